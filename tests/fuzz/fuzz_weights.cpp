// Input: a weight file (weight.bin).
#include <cstdint>
#include <cstdlib>

#include "format/weights/blob.h"

namespace {

void touch(const moka::format::Blob& blob) {
  unsigned sum = 0;
  for (std::byte b : blob.data.span) sum += static_cast<unsigned>(b);
  volatile unsigned sink = sum;
  (void)sink;
  if (blob.count * bit_width(blob.type) + blob.padding_bits != blob.data.size() * 8) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  if (auto all = moka::format::list_blobs(bytes); all.ok())
    for (const auto& blob : *all) touch(blob);
  for (uint64_t offset = 0; offset <= size; offset += 64)
    if (auto blob = moka::format::read_blob(bytes, offset); blob.ok()) touch(*blob);
  return 0;
}
