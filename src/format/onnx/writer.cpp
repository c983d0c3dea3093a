// SPDX-License-Identifier: Apache-2.0
#include "format/onnx/writer.h"

#include <cstring>
#include <iterator>
#include <protozero/varint.hpp>

#include "format/onnx/fields.h"

namespace moka::format::onnx {
namespace {

constexpr uint32_t wire_bits = 3;
enum Wire : uint32_t { varint = 0, delimited = 2, fixed32 = 5 };

}  // namespace

void MessageWriter::head(uint32_t field, uint32_t wire) {
  std::string text;
  protozero::write_varint(std::back_inserter(text), (uint64_t{field} << wire_bits) | wire);
  out_.append(std::string_view(text));
}

void MessageWriter::sized(uint32_t field, size_t size) {
  head(field, Wire::delimited);
  std::string text;
  protozero::write_varint(std::back_inserter(text), size);
  out_.append(std::string_view(text));
}

void MessageWriter::integer_always(uint32_t field, int64_t value) {
  head(field, Wire::varint);
  std::string text;
  protozero::write_varint(std::back_inserter(text), static_cast<uint64_t>(value));
  out_.append(std::string_view(text));
}

void MessageWriter::number(uint32_t field, float value) {
  head(field, Wire::fixed32);
  char bits[sizeof value];
  std::memcpy(bits, &value, sizeof value);
  out_.append(std::string_view(bits, sizeof bits));
}

void MessageWriter::text_always(uint32_t field, std::string_view value) {
  sized(field, value.size());
  out_.append(value);
}

void MessageWriter::bytes(uint32_t field, const Bytes& value) {
  sized(field, value.size());
  out_.append(value);
}

void MessageWriter::message(uint32_t field, const Rope& value) {
  sized(field, value.size());
  for (Bytes& piece : value.pieces()) out_.append(std::move(piece));
}

Properties Writer::place(const Bytes& raw) {
  // Readers can map a large tensor by itself.
  constexpr size_t large = size_t{1} << 20, page = 4096, line = 64;
  const size_t alignment = raw.size() >= large ? page : line;
  const size_t offset = (data.size() + alignment - 1) / alignment * alignment;
  data.append(std::string(offset - data.size(), '\0'));
  data.append(raw);
  return {{"location", options_.data_file}, {"offset", cat(offset)}, {"length", cat(raw.size())}};
}

Rope Writer::tensor(const Tensor& t) {
  MessageWriter out;
  for (const int64_t d : t.dims) out.integer_always(field::tensor::dims, d);
  out.integer(field::tensor::type, static_cast<int64_t>(t.type));
  const auto packed = [&](uint32_t number, const Bytes& bytes) {
    if (!bytes.empty()) out.bytes(number, bytes);
  };
  packed(field::tensor::float_data, t.float_data);
  packed(field::tensor::int32_data, t.int32_data);
  for (const std::string& s : t.strings) out.text_always(field::tensor::string_data, s);
  packed(field::tensor::int64_data, t.int64_data);
  out.text(field::tensor::name, t.name);
  Properties external = t.external;
  bool is_external = t.is_external;
  if (t.raw && !options_.data_file.empty() && t.raw->size() >= options_.external_from) {
    external = place(*t.raw);
    is_external = true;
  } else if (t.raw) {
    out.bytes(field::tensor::raw_data, *t.raw);
  }
  packed(field::tensor::double_data, t.double_data);
  packed(field::tensor::uint64_data, t.uint64_data);
  out.text(field::tensor::doc_string, t.doc_string);
  properties(out, field::tensor::external_data, external);
  out.integer(field::tensor::data_location, is_external ? 1 : 0);
  return std::move(out).take();
}

Rope Writer::sparse_tensor(const SparseTensor& s) {
  MessageWriter out;
  out.message(field::sparse_tensor::values, tensor(s.values));
  out.message(field::sparse_tensor::indices, tensor(s.indices));
  for (const int64_t d : s.dims) out.integer_always(field::sparse_tensor::dims, d);
  return std::move(out).take();
}

Rope Writer::value_info(const ValueInfo& v) {
  MessageWriter out;
  out.text(field::value_info::name, v.name);
  if (v.type.kind != Type::Kind::none) out.message(field::value_info::type, type(v.type));
  out.text(field::value_info::doc_string, v.doc_string);
  return std::move(out).take();
}

Rope Writer::type(const Type& t) {
  using Kind = Type::Kind;
  MessageWriter inner;
  uint32_t number = 0;
  switch (t.kind) {
    case Kind::none: break;
    case Kind::tensor:
    case Kind::sparse_tensor: {
      number = t.kind == Kind::tensor ? field::type::tensor : field::type::sparse_tensor;
      inner.integer(field::type::first, static_cast<int64_t>(t.element));
      if (!t.shape) break;
      MessageWriter shape;
      for (const Dimension& d : *t.shape) {
        MessageWriter dim;
        if (d.value) dim.integer_always(field::shape::dim_value, *d.value);
        dim.text(field::shape::dim_param, d.param);
        dim.text(field::shape::denotation, d.denotation);
        shape.message(field::shape::dim, std::move(dim).take());
      }
      inner.message(field::type::second, std::move(shape).take());
      break;
    }
    case Kind::sequence:
    case Kind::optional:
      number = t.kind == Kind::sequence ? field::type::sequence : field::type::optional;
      if (t.inner != nullptr) inner.message(field::type::first, type(*t.inner));
      break;
    case Kind::map:
      number = field::type::map;
      inner.integer(field::type::first, static_cast<int64_t>(t.element));
      if (t.inner != nullptr) inner.message(field::type::second, type(*t.inner));
      break;
    case Kind::opaque: number = field::type::opaque; break;
  }
  MessageWriter out;
  if (number != 0) out.message(number, std::move(inner).take());
  out.text(field::type::denotation, t.denotation);
  return std::move(out).take();
}

Rope Writer::opset(const OperatorSet& o) {
  MessageWriter out;
  out.text_always(field::opset::domain, o.domain);
  out.integer(field::opset::version, o.version);
  return std::move(out).take();
}

void Writer::properties(MessageWriter& out, uint32_t field, const Properties& list) {
  for (const auto& [key, value] : list) {
    MessageWriter inner;
    inner.text(field::property::key, key);
    inner.text(field::property::value, value);
    out.message(field, std::move(inner).take());
  }
}

}  // namespace moka::format::onnx
