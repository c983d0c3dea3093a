// SPDX-License-Identifier: Apache-2.0
// Input: a byte that chooses the reader, then the bytes of a file.
#include <cstdint>
#include <cstdlib>

#include "moka/files.h"

namespace {

constexpr int64_t kMostPixels = int64_t{1} << 16;

/// Every pixel is read, so that the address sanitizer sees them all.
void use(const moka::Image& image) {
  if (image.width * image.height > kMostPixels) std::abort();
  (void)moka::encode_png(moka::fit_image(image, 7, 5, moka::ImageFit::center_crop));
}

void read(unsigned reader, std::span<const std::byte> bytes) {
  moka::FeatureDescription feature;
  moka::ReadingOptions options;
  options.most_pixels = kMostPixels;
  options.pad = true;
  switch (reader % 6) {
    case 0: return use(moka::decode_image(bytes, "fuzz", kMostPixels));
    case 1: (void)moka::decode_npy(bytes); return;
    case 2: (void)moka::encode_npz(moka::decode_npz(bytes)); return;
    case 3: (void)moka::encode_wav(moka::mono(moka::decode_sound(bytes))); return;
    case 4:
      feature.array.shape = {1, 16};
      (void)moka::decode_feature(feature, bytes, "fuzz.json", options);
      return;
    default:
      feature.type = moka::FeatureType::image;
      feature.image.width = feature.image.height = 4;
      use(std::get<moka::Image>(moka::decode_feature(feature, bytes, "fuzz.npy", options)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0], std::as_bytes(std::span(data + 1, size - 1)));
  } catch (const moka::Exception& e) {
    if (e.kind() == moka::ErrorKind::internal) std::abort();
  }
  return 0;
}
