// SPDX-License-Identifier: Apache-2.0
#include "format/onnx/reader.h"

#include <iterator>
#include <protozero/varint.hpp>

#include "format/onnx/fields.h"

namespace moka::format::onnx {

using protozero::data_view;
using protozero::pbf_wire_type;

namespace {

void expect(const pbf_reader& in, pbf_wire_type wire) {
  if (!in.has_wire_type(wire)) throw Refused(cat("field ", in.tag(), " of a message has an unexpected wire type"));
}

}  // namespace

void Reader::count() {
  if (++messages_ > max_messages) throw Refused(cat("it has more than ", max_messages, " messages"));
}

pbf_reader Reader::message(pbf_reader& in) {
  expect(in, pbf_wire_type::length_delimited);
  count();
  return in.get_message();
}

std::string Reader::text(pbf_reader& in) {
  expect(in, pbf_wire_type::length_delimited);
  count();
  return in.get_string();
}

Bytes Reader::payload(pbf_reader& in) const {
  expect(in, pbf_wire_type::length_delimited);
  const data_view view = in.get_view();
  return {{reinterpret_cast<const std::byte*>(view.data()), view.size()}, bytes_.owner};
}

int64_t Reader::integer(pbf_reader& in) {
  expect(in, pbf_wire_type::varint);
  return in.get_int64();
}

float Reader::number(pbf_reader& in) {
  expect(in, pbf_wire_type::fixed32);
  return in.get_float();
}

void Reader::numbers(pbf_reader& in, std::vector<float>& out) {
  if (in.has_wire_type(pbf_wire_type::fixed32)) return out.push_back(in.get_float());
  expect(in, pbf_wire_type::length_delimited);
  const auto range = in.get_packed_float();
  out.insert(out.end(), range.begin(), range.end());
}

void Reader::integers(pbf_reader& in, std::vector<int64_t>& out) {
  if (in.has_wire_type(pbf_wire_type::varint)) return out.push_back(in.get_int64());
  expect(in, pbf_wire_type::length_delimited);
  const auto range = in.get_packed_int64();
  for (const int64_t v : range) out.push_back(v);
}

void Reader::Packed::add(pbf_reader& in) {
  const auto join = [&] {
    if (own_.empty()) own_ = view_.text();
    view_ = {};
  };
  switch (in.wire_type()) {
    case pbf_wire_type::length_delimited: {
      Bytes more = reader_->payload(in);
      if (own_.empty() && view_.empty()) {
        view_ = std::move(more);
        return;
      }
      join();
      own_ += more.text();
      return;
    }
    case pbf_wire_type::varint: join(), protozero::write_varint(std::back_inserter(own_), in.get_uint64()); return;
    case pbf_wire_type::fixed32: join(), append(in.get_fixed32()); return;
    case pbf_wire_type::fixed64: join(), append(in.get_fixed64()); return;
    default: throw Refused(cat("field ", in.tag(), " of a tensor has an unexpected wire type"));
  }
}

Bytes Reader::Packed::take() { return own_.empty() ? std::move(view_) : Bytes::from(std::move(own_)); }

Tensor Reader::tensor(pbf_reader in) {
  Tensor out;
  Packed floats(*this), ints(*this), longs(*this), doubles(*this), unsigned_longs(*this);
  while (in.next()) {
    switch (in.tag()) {
      case field::tensor::dims: integers(in, out.dims); break;
      case field::tensor::type: out.type = static_cast<DataType>(integer(in)); break;
      case field::tensor::float_data: floats.add(in); break;
      case field::tensor::int32_data: ints.add(in); break;
      case field::tensor::string_data: out.strings.push_back(text(in)); break;
      case field::tensor::int64_data: longs.add(in); break;
      case field::tensor::name: out.name = text(in); break;
      case field::tensor::raw_data: out.raw = payload(in); break;
      case field::tensor::double_data: doubles.add(in); break;
      case field::tensor::uint64_data: unsigned_longs.add(in); break;
      case field::tensor::doc_string: out.doc_string = text(in); break;
      case field::tensor::external_data: out.external.push_back(property(message(in))); break;
      case field::tensor::data_location: out.is_external = integer(in) == 1; break;
      default: in.skip();
    }
  }
  out.float_data = floats.take();
  out.int32_data = ints.take();
  out.int64_data = longs.take();
  out.double_data = doubles.take();
  out.uint64_data = unsigned_longs.take();
  return out;
}

SparseTensor Reader::sparse_tensor(pbf_reader in) {
  SparseTensor out;
  while (in.next()) {
    switch (in.tag()) {
      case field::sparse_tensor::values: out.values = tensor(message(in)); break;
      case field::sparse_tensor::indices: out.indices = tensor(message(in)); break;
      case field::sparse_tensor::dims: integers(in, out.dims); break;
      default: in.skip();
    }
  }
  return out;
}

ValueInfo Reader::value_info(pbf_reader in) {
  ValueInfo out;
  while (in.next()) {
    switch (in.tag()) {
      case field::value_info::name: out.name = text(in); break;
      case field::value_info::type: out.type = type(message(in)); break;
      case field::value_info::doc_string: out.doc_string = text(in); break;
      default: in.skip();
    }
  }
  return out;
}

Type Reader::type(pbf_reader in) {
  const Level level(*this);
  Type out;
  const auto read = [&](Type::Kind kind) {
    out.kind = kind;
    pbf_reader inner = message(in);
    while (inner.next()) {
      const bool tensor = kind == Type::Kind::tensor || kind == Type::Kind::sparse_tensor;
      const bool map = kind == Type::Kind::map;
      if (inner.tag() == field::type::first && (tensor || map))
        out.element = static_cast<DataType>(integer(inner));
      else if (inner.tag() == field::type::second && tensor)
        out.shape = shape(message(inner));
      else if (inner.tag() == (map ? field::type::second : field::type::first) && !tensor)
        out.inner = std::make_shared<Type>(type(message(inner)));
      else
        inner.skip();
    }
  };
  while (in.next()) {
    switch (in.tag()) {
      case field::type::tensor: read(Type::Kind::tensor); break;
      case field::type::sparse_tensor: read(Type::Kind::sparse_tensor); break;
      case field::type::sequence: read(Type::Kind::sequence); break;
      case field::type::optional: read(Type::Kind::optional); break;
      case field::type::map: read(Type::Kind::map); break;
      case field::type::opaque: in.skip(), out.kind = Type::Kind::opaque; break;
      case field::type::denotation: out.denotation = text(in); break;
      default: in.skip();
    }
  }
  return out;
}

std::vector<Dimension> Reader::shape(pbf_reader in) {
  std::vector<Dimension> out;
  while (in.next()) {
    if (in.tag() == field::shape::dim)
      out.push_back(dimension(message(in)));
    else
      in.skip();
  }
  return out;
}

Dimension Reader::dimension(pbf_reader in) {
  Dimension out;
  while (in.next()) {
    switch (in.tag()) {
      case field::shape::dim_value: out.value = integer(in); break;
      case field::shape::dim_param: out.param = text(in); break;
      case field::shape::denotation: out.denotation = text(in); break;
      default: in.skip();
    }
  }
  return out;
}

OperatorSet Reader::opset(pbf_reader in) {
  OperatorSet out;
  while (in.next()) {
    switch (in.tag()) {
      case field::opset::domain: out.domain = text(in); break;
      case field::opset::version: out.version = integer(in); break;
      default: in.skip();
    }
  }
  return out;
}

std::pair<std::string, std::string> Reader::property(pbf_reader in) {
  std::pair<std::string, std::string> out;
  while (in.next()) {
    switch (in.tag()) {
      case field::property::key: out.first = text(in); break;
      case field::property::value: out.second = text(in); break;
      default: in.skip();
    }
  }
  return out;
}

QuantizationAnnotation Reader::quantization(pbf_reader in) {
  QuantizationAnnotation out;
  while (in.next()) {
    switch (in.tag()) {
      case field::quantization::tensor: out.tensor = text(in); break;
      case field::quantization::parameters: out.parameters.push_back(property(message(in))); break;
      default: in.skip();
    }
  }
  return out;
}

}  // namespace moka::format::onnx
