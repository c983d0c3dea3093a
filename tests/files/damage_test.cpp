// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "files/files_util.h"
#include "files/samples.h"

namespace moka::test {
namespace {

using Reader = std::function<void(std::span<const std::byte>)>;

/// A damaged file may still be readable. Otherwise the error must be an Exception.
void read(const Reader& reader, std::span<const std::byte> bytes) {
  // A copy of the exact size lets the address sanitizer detect reads past the end.
  const std::vector<std::byte> copy(bytes.begin(), bytes.end());
  try {
    reader(copy);
  } catch (const Exception&) {
  }
}

void damage(const std::vector<std::byte>& good, const Reader& reader) {
  for (size_t length = 0; length < good.size(); ++length) read(reader, std::span(good).first(length));
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bad = good;
    for (int i = static_cast<int>(random() % 4); i >= 0; --i) {
      std::byte& victim = bad[random() % bad.size()];
      constexpr uint8_t kTelling[] = {0, 0xff, 0x7f, 0x80, 1};
      victim = random() % 2 ? victim ^ static_cast<std::byte>(1u << (random() % 8))
                            : static_cast<std::byte>(kTelling[random() % 5]);
    }
    read(reader, bad);
  }
}

TEST(Damage, Npy) {
  const Reader reader = [](auto bytes) { decode_npy(bytes, "bad"); };
  for (auto hex : {samples::kF4C, samples::kBeI2Fortran, samples::kF2V2, samples::kBool3dFV3, samples::kU,
                   samples::kSBe, samples::kScalar}) {
    damage(samples::bytes(hex), reader);
  }
}

TEST(Damage, Npz) {
  const Reader reader = [](auto bytes) { decode_npz(bytes, "bad"); };
  for (auto hex : {samples::kNpz, samples::kNpzZ}) damage(samples::bytes(hex), reader);
}

TEST(Damage, Picture) {
  const Reader reader = [](auto bytes) { decode_image(bytes, "bad", 1 << 16); };
  for (auto hex : {samples::kPngRgb, samples::kPngPal, samples::kPngGray16, samples::kPng1bit, samples::kPngLa,
                   samples::kJpg, samples::kJpgGrayExif6, samples::kJpgCmyk, samples::kWebp}) {
    damage(samples::bytes(hex), reader);
  }
}

TEST(Damage, Wav) {
  const Reader reader = [](auto bytes) { decode_sound(bytes, "bad"); };
  damage(encode_wav({8000, 2, std::vector<float>(64, 0.25f)}), reader);
}

/// A model's input meets the same bytes under every kind of file.
TEST(Damage, Features) {
  FeatureDescription array, image;
  array.array.shape = {1, 64};
  image.type = FeatureType::image;
  image.image.width = image.image.height = 4;
  ReadingOptions options;
  options.pad = true;
  options.most_pixels = 1 << 16;
  for (const FeatureDescription* feature : {&array, &image})
    for (auto hex : {samples::kF4C, samples::kNpz, samples::kPngRgb, samples::kJpg})
      damage(samples::bytes(hex), [&](auto bytes) { decode_feature(*feature, bytes, "bad.wav", options); });
}

}  // namespace
}  // namespace moka::test
