// SPDX-License-Identifier: Apache-2.0
#include "format/weights/blob.h"

#include <bit>
#include <cstring>

#include "format/file_kind.h"

namespace moka::format {
namespace {

static_assert(std::endian::native == std::endian::little, "weight files are read in place");

constexpr uint64_t record_size = 64;  // also the alignment of records and of data
constexpr uint32_t sentinel = 0xDEADBEEF;

struct TypeInfo {
  std::string_view name;
  unsigned bits;
};

// Indexed by BlobType.
constexpr TypeInfo types[] = {{"", 0},          {"float16", 16},      {"float32", 32},   {"uint8", 8}, {"int8", 8},
                              {"bfloat16", 16}, {"int16", 16},        {"uint16", 16},    {"int4", 4},  {"uint1", 1},
                              {"uint2", 2},     {"uint4", 4},         {"uint3", 3},      {"uint6", 6}, {"int32", 32},
                              {"uint32", 32},   {"float8_e4m3fn", 8}, {"float8_e5m2", 8}};

template <class T>
T load(std::span<const std::byte> from, uint64_t offset) {
  T v;
  std::memcpy(&v, from.data() + offset, sizeof v);
  return v;
}

Result<uint32_t> blob_count(const Bytes& file) {
  if (file.size() < record_size)
    return foreign_or(fail(ErrorCode::malformed, "a weight file starts with a header of ", record_size,
                           " bytes; this one has ", file.size(), " bytes"),
                      file, "Core ML's weights");
  auto version = load<uint32_t>(file.span, 4);
  if (version == 1)
    return fail(ErrorCode::unsupported,
                "the weight file uses blob storage version 1, whose layout is not public; "
                "supported is version 2");
  const bool counts_up = version > 0 && version <= 0xffff;
  if (version != 2 && (!counts_up || !foreign_kind(file).empty()))
    return foreign_or(
        fail(ErrorCode::malformed, "expected Core ML's weights, got bytes that say blob storage version ", version),
        file, "Core ML's weights");
  if (version != 2)
    return fail(ErrorCode::unsupported, "the weight file says blob storage version ", version, "; supported is 2");
  return load<uint32_t>(file.span, 0);
}

Error bad(uint64_t offset, const auto&... parts) {
  return fail(ErrorCode::malformed, "weight blob at byte ", offset, ": ", parts...);
}

Result<Blob> read_record(const Bytes& file, uint64_t offset, std::span<const std::byte> head) {
  if (offset < record_size || offset > file.size() || file.size() - offset < record_size)
    return bad(offset, "no record of ", record_size, " bytes there; the file has ", file.size(), " bytes");
  if (head.size() < record_size) head = file.span.subspan(offset);
  const bool looked_at = head.data() == file.data() + offset;
  if (auto got = load<uint32_t>(head, 0); got != sentinel)
    return bad(offset, "the record starts with ", got, ", expected ", sentinel);
  auto type = load<uint32_t>(head, 4);
  auto size = load<uint64_t>(head, 8);
  auto begin = load<uint64_t>(head, 16);
  auto padding = load<uint64_t>(head, 24);
  if (type == 0 || type >= std::size(types))
    return fail(ErrorCode::unsupported, "weight blob at byte ", offset, " has the unknown data type ", type);
  if (offset % record_size != 0 || begin % record_size != 0)
    return bad(offset, "the record or its data at byte ", begin, " is not aligned to ", record_size, " bytes");
  if (begin > file.size() || size > file.size() - begin)
    return bad(offset, "its data, ", size, " bytes from byte ", begin, ", ends after the file's ", file.size(),
               " bytes");
  Blob blob;
  blob.type = static_cast<BlobType>(type);
  blob.offset = offset;
  unsigned bits = bit_width(blob.type);
  // Older writers leave the padding field of whole-byte types undefined.
  if (bits < 8) {
    if (padding >= 8 || padding > size * 8) return bad(offset, padding, " bits of padding in ", size, " bytes of data");
    blob.padding_bits = static_cast<unsigned>(padding);
  }
  // size < 2^61, because the blob lies inside a mapped file.
  uint64_t used = size * 8 - blob.padding_bits;
  if (used % bits != 0)
    return bad(offset, used, " bits of data are not a whole number of ", to_string(blob.type), " elements");
  blob.count = used / bits;
  const uint64_t behind = begin - offset;  // wraps around when the data precedes the record
  const bool copied = !looked_at && begin >= offset && behind <= head.size() && size <= head.size() - behind;
  blob.data = copied ? Bytes::copy_of(head.subspan(behind, size)) : file.slice(begin, size);
  return blob;
}

}  // namespace

std::string_view to_string(BlobType type) {
  auto i = static_cast<size_t>(type);
  return i < std::size(types) ? types[i].name : "";
}

unsigned bit_width(BlobType type) {
  auto i = static_cast<size_t>(type);
  return i < std::size(types) ? types[i].bits : 0;
}

bool has_weight_header(const Bytes& file) { return blob_count(file).ok(); }

Result<Blob> read_blob(const Bytes& file, uint64_t offset, std::span<const std::byte> head) {
  MOKA_TRY(blob_count(file));
  return read_record(file, offset, head);
}

Result<std::vector<Blob>> list_blobs(const Bytes& file) {
  uint32_t count = MOKA_TRY(blob_count(file));
  if (count > file.size() / record_size)
    return fail(ErrorCode::malformed, "the weight file counts ", count, " blobs in ", file.size(), " bytes");
  std::vector<Blob> out;
  out.reserve(count);
  uint64_t at = record_size;
  for (uint32_t i = 0; i < count; ++i) {
    Blob blob = MOKA_TRY(read_record(file, at, {}));
    auto begin = static_cast<uint64_t>(blob.data.data() - file.data());
    uint64_t end = begin + blob.data.size();
    if (begin < at + record_size) return bad(at, "its data starts at byte ", begin, ", before the end of its record");
    at = (end + record_size - 1) / record_size * record_size;
    out.push_back(std::move(blob));
  }
  return out;
}

}  // namespace moka::format
