// SPDX-License-Identifier: Apache-2.0
// Input: a file of packed weights. It is also read with corrected length and index checksum. Everything that is
// accepted must lie inside the file.
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/checksum.h"
#include "plan/packed_file.h"

namespace {

void read(const std::vector<std::byte>& data) {
  auto file = moka::plan::parse_packed_file(moka::Bytes::copy_of(data));
  if (!file.ok()) return;
  for (const auto& [key, entry] : file->entries) entry.whole();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(input);
  std::vector<std::byte> data(first, first + size);
  read(data);
  constexpr size_t kFileSize = 16, kIndexSize = 24, kIndexSum = 32, kHeader = 40;
  if (size < kHeader) return 0;
  uint64_t index = 0;
  std::memcpy(&index, data.data() + kIndexSize, sizeof index);
  if (index > size - kHeader) return 0;
  const uint64_t file_size = size, sum = moka::checksum(std::span(data).subspan(kHeader, static_cast<size_t>(index)));
  std::memcpy(data.data() + kFileSize, &file_size, sizeof file_size);
  std::memcpy(data.data() + kIndexSum, &sum, sizeof sum);
  read(data);
  return 0;
}
