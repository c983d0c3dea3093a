// SPDX-License-Identifier: Apache-2.0
// Input: a weight file (weight.bin).
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "format/weights/blob.h"

namespace {

constexpr uint64_t kOffsets = 32;  // at which a blob is read

void touch(const moka::format::Blob& blob) {
  const auto& bytes = blob.data.span;
  volatile std::byte sink = bytes.empty() ? std::byte{} : bytes.front() ^ bytes.back();
  (void)sink;
  if (blob.count * bit_width(blob.type) + blob.padding_bits != blob.data.size() * 8) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  if (auto all = moka::format::list_blobs(bytes); all.ok())
    for (const auto& blob : *all) touch(blob);
  for (uint64_t offset = 0; offset <= std::min<uint64_t>(size, kOffsets * 64); offset += 64)
    if (auto blob = moka::format::read_blob(bytes, offset); blob.ok()) touch(*blob);
  return 0;
}
