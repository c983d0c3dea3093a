// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstring>
#include <limits>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "format/onnx/read.h"

namespace moka::format::onnx {
namespace {

constexpr unsigned byte_bits = 8;

Result<uint64_t> number_of(const std::string& text, std::string_view what) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(ErrorCode::malformed, "external data: expected a number as ", what, ", got '", text, "'");
  return out;
}

Result<Bytes> external(const Tensor& tensor, const WeightStore& files, size_t size) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& [key, value] : tensor.external) {
    if (key == "location") location = value;
    if (key == "offset") offset = MOKA_TRY(number_of(value, "offset"));
    if (key == "length") length = MOKA_TRY(number_of(value, "length"));
  }
  if (length && *length != size)
    return fail(ErrorCode::malformed, "external data: expected ", size, " bytes, got a length of ", *length);
  const Bytes file = MOKA_TRY(files.file(location));
  if (offset > file.size() || size > file.size() - offset)
    return fail(ErrorCode::malformed, "external data: '", location, "' has ", file.size(), " bytes, the tensor takes ",
                size, " at byte ", offset);
  return file.slice(offset, size);
}

/// Decodes `count` varints, each as `width` bytes.
Result<Bytes> decode(const Bytes& packed, size_t count, size_t width) {
  // Every varint takes a byte or more, so the size of the message bounds the allocation.
  if (packed.size() < count)
    return fail(ErrorCode::malformed, "expected ", count, " numbers, got ", packed.size(), " bytes");
  std::string out(count * width, '\0');
  const char* at = packed.text().data();
  const char* const end = at + packed.size();
  try {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t v = protozero::decode_varint(&at, end);
      std::memcpy(out.data() + i * width, &v, width);
    }
  } catch (const protozero::exception&) {
    return fail(ErrorCode::malformed, "expected ", count, " numbers, got fewer or incomplete ones");
  }
  if (at != end) return fail(ErrorCode::malformed, "expected ", count, " numbers, got more");
  return Bytes::from(std::move(out));
}

Result<Bytes> exactly(const Bytes& bytes, size_t size) {
  if (bytes.size() != size) return fail(ErrorCode::malformed, "expected ", size, " bytes, got ", bytes.size());
  return bytes;
}

Result<Bytes> typed(const Tensor& t, size_t count, size_t size) {
  switch (t.type) {
    case DataType::float32:
    case DataType::complex64: return exactly(t.float_data, size);
    case DataType::float64:
    case DataType::complex128: return exactly(t.double_data, size);
    case DataType::int64: return decode(t.int64_data, count, sizeof(int64_t));
    case DataType::uint64: return decode(t.uint64_data, count, sizeof(uint64_t));
    case DataType::uint32: return decode(t.uint64_data, count, sizeof(uint32_t));
    default: break;
  }
  // Each number of int32_data holds one element, or a byte of packed ones.
  const unsigned bits = bits_of(t.type);
  return bits < byte_bits ? decode(t.int32_data, size, 1) : decode(t.int32_data, count, bits / byte_bits);
}

Result<Bytes> checked_contents(const Tensor& t, const WeightStore& files) {
  const unsigned bits = bits_of(t.type);
  if (bits == 0)
    return fail(ErrorCode::unsupported, "its elements are of type ", to_string(t.type), ", which has no raw form");
  const auto count = static_cast<size_t>(MOKA_TRY(count_of(t)));
  const size_t size = (count * bits + byte_bits - 1) / byte_bits;
  const bool has_typed = !(t.float_data.empty() && t.int32_data.empty() && t.int64_data.empty() &&
                           t.double_data.empty() && t.uint64_data.empty());
  if (t.is_external + t.raw.has_value() + has_typed > 1)
    return fail(ErrorCode::malformed, "its elements are given more than once");
  if (t.is_external) return external(t, files, size);
  if (t.raw) return exactly(*t.raw, size);
  return typed(t, count, size);
}

}  // namespace

Result<int64_t> count_of(const Tensor& tensor) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max() / 128;  // whose bits can be counted
  int64_t count = 1;
  bool is_empty = false;
  for (const int64_t d : tensor.dims) {
    if (d < 0) return fail(ErrorCode::malformed, "tensor '", tensor.name, "': a dimension is ", d);
    if (d == 0) is_empty = true;
    if (d != 0 && count > most / d)
      return fail(ErrorCode::malformed, "tensor '", tensor.name, "': its dimensions are too large");
    if (d != 0) count *= d;
  }
  return is_empty ? 0 : count;
}

Result<Bytes> contents(const Tensor& tensor, const WeightStore& files) {
  return MOKA_TRY_IN(checked_contents(tensor, files), cat("tensor '", tensor.name, "'"));
}

}  // namespace moka::format::onnx
