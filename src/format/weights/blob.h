// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace moka::format {

/// Element types of a weight file. The values are the numbers in its records.
enum class BlobType : uint32_t {
  float16 = 1,
  float32 = 2,
  uint8 = 3,
  int8 = 4,
  bfloat16 = 5,
  int16 = 6,
  uint16 = 7,
  int4 = 8,
  uint1 = 9,
  uint2 = 10,
  uint4 = 11,
  uint3 = 12,
  uint6 = 13,
  int32 = 14,
  uint32 = 15,
  float8_e4m3fn = 16,
  float8_e5m2 = 17,
};

std::string_view to_string(BlobType type);
/// Bits of one element: 1 to 32.
unsigned bit_width(BlobType type);

/// One tensor of a weight file. Elements are little-endian; elements below 8 bits are packed from bit 0 upwards.
struct Blob {
  BlobType type = BlobType::float16;
  Bytes data;                 ///< a 64-byte aligned part of the file, or a copy
  uint64_t offset = 0;        ///< offset of its record, by which a program refers to it
  unsigned padding_bits = 0;  ///< unused high bits at the end of `data`, 0 to 7
  uint64_t count = 0;         ///< number of elements
};

/// Reads the blob whose record starts at byte `offset` of a weight file (blob storage version 2). Errors: malformed
/// (record, type or data outside the file or inconsistent), unsupported (storage version 1, whose layout is not public,
/// and any other version). `head`: bytes of the file from `offset` on that were already read. They are not read again,
/// and data inside them is copied.
Result<Blob> read_blob(const Bytes& file, uint64_t offset, std::span<const std::byte> head = {});

/// Whether the file begins with a header that read_blob accepts.
bool has_weight_header(const Bytes& file);

/// Lists the blobs of a weight file in file order. Errors as read_blob, and malformed when the header counts more blobs
/// than follow.
Result<std::vector<Blob>> list_blobs(const Bytes& file);

}  // namespace moka::format
