// SPDX-License-Identifier: Apache-2.0
#include "compress/messages.h"

#include <cstring>

namespace moka::compress {

using format::BlobType;
using format::Message;

namespace {

/// As coremltools does: fewer elements are in the specification.
constexpr int64_t kFewest = 10;

std::string_view data_type(BlobType type) {
  switch (type) {
    case BlobType::float16: return "FLOAT16";
    case BlobType::float32: return "FLOAT32";
    case BlobType::uint8: return "UINT8";
    case BlobType::int8: return "INT8";
    case BlobType::int4: return "INT4";
    case BlobType::uint1: return "UINT1";
    case BlobType::uint2: return "UINT2";
    case BlobType::uint3: return "UINT3";
    case BlobType::uint4: return "UINT4";
    case BlobType::uint6: return "UINT6";
    case BlobType::int32: return "INT32";
    case BlobType::uint32: return "UINT32";
    default: return "";
  }
}

Status set_type(Message value_type, BlobType type, const Shape& shape) {
  Message tensor = MOKA_TRY(value_type.edit("tensorType"));
  MOKA_TRY(tensor.set("dataType", std::string(data_type(type))));
  return set_shape(tensor, shape);
}

Status set_immediate(Message value, const Part& part) {
  Message immediate = MOKA_TRY(value.edit("immediateValue"));
  Message tensor = MOKA_TRY(immediate.edit("tensor"));
  if (part.type == BlobType::float32) return MOKA_TRY(tensor.edit("floats")).set_packed("values", part.data);
  if (part.type != BlobType::int32) return MOKA_TRY(tensor.edit("bytes")).set("values", part.data);
  std::vector<format::Scalar> numbers;
  for (size_t i = 0; i + sizeof(int32_t) <= part.data.size(); i += sizeof(int32_t)) {
    int32_t number = 0;
    std::memcpy(&number, part.data.data() + i, sizeof number);
    numbers.emplace_back(int64_t{number});
  }
  return MOKA_TRY(tensor.edit("ints")).set_all("values", numbers);
}

Result<Message> add(Message message, std::string_view map, std::string_view key) {
  Message entry = MOKA_TRY(message.edit(map));
  MOKA_TRY(entry.set("key", std::string(key)));
  return entry.edit("value");
}

Status set_name(Message op, const std::string& name) {
  Message value = MOKA_TRY(add(op, "attributes", "name"));
  Message type = MOKA_TRY(value.edit("type"));
  MOKA_TRY(MOKA_TRY(type.edit("tensorType")).set("dataType", std::string("STRING")));
  Message immediate = MOKA_TRY(value.edit("immediateValue"));
  Message tensor = MOKA_TRY(immediate.edit("tensor"));
  const std::vector<format::Scalar> values{name};
  return MOKA_TRY(tensor.edit("strings")).set_all("values", values);
}

}  // namespace

Result<std::optional<Message>> find(const Message& message, std::string_view map, std::string_view key) {
  for (const Message& entry : MOKA_TRY(message.children(map))) {
    const auto keys = MOKA_TRY(entry.values("key"));
    if (!keys.empty() && std::get<std::string>(keys[0]) == key && MOKA_TRY(entry.count("value")) > 0)
      return std::optional<Message>(MOKA_TRY(entry.child("value")));
  }
  return std::optional<Message>();
}

Result<std::optional<Shape>> shape_of(const Message& value_type) {
  if (MOKA_TRY(value_type.which("type")) != "tensorType") return std::optional<Shape>();
  Shape out;
  for (const Message& dimension : MOKA_TRY(MOKA_TRY(value_type.child("tensorType")).children("dimensions"))) {
    const std::string kind = MOKA_TRY(dimension.which("dimension"));
    if (kind != "constant") return std::optional<Shape>();
    const auto size = MOKA_TRY(MOKA_TRY(dimension.child("constant")).values("size"));
    out.push_back(size.empty() ? 0 : static_cast<int64_t>(std::get<uint64_t>(size[0])));
  }
  return std::optional<Shape>(std::move(out));
}

Status set_shape(Message tensor_type, const Shape& shape) {
  if (!shape.empty()) MOKA_TRY(tensor_type.set("rank", static_cast<int64_t>(shape.size())));
  for (const int64_t size : shape) {
    Message dimension = MOKA_TRY(tensor_type.edit("dimensions"));
    MOKA_TRY(MOKA_TRY(dimension.edit("constant")).set("size", static_cast<uint64_t>(size)));
  }
  return {};
}

Status set_value(Message value, const Part& part, format::WeightFile& file) {
  const int64_t count = count_of(part.shape);
  MOKA_TRY(set_type(MOKA_TRY(value.edit("type")), part.type, part.shape));
  if (count < kFewest && format::bit_width(part.type) >= 8) return set_immediate(value, part);
  Message blob = MOKA_TRY(value.edit("blobFileValue"));
  MOKA_TRY(blob.set("fileName", std::string(kNewFile)));
  return blob.set("offset", file.add(part.type, part.data, static_cast<uint64_t>(count)));
}

Result<std::vector<Message>> operations_of(const Encoding& encoding, const std::string& name, Form form,
                                           format::WeightFile& file) {
  std::vector<Message> out;
  auto result_name = [&](size_t operation, size_t output) {
    if (operation + 1 == encoding.operations.size()) return name;
    return cat(name, "_compressed_", operation, output == 0 ? "" : cat("_", output));
  };
  for (size_t i = 0; i < encoding.operations.size(); ++i) {
    const ConstexprOp& op = encoding.operations[i];
    Message message = MOKA_TRY(Message::make("MILSpec.Operation"));
    MOKA_TRY(message.set("type", op.type));
    MOKA_TRY(set_name(message, result_name(i, 0)));
    for (const Parameter& p : op.parameters) {
      if (form == Form::ios16) {
        MOKA_TRY(set_value(MOKA_TRY(add(message, "attributes", p.name)), std::get<Part>(p.value), file));
        continue;
      }
      Message argument = MOKA_TRY(add(message, "inputs", p.name));
      Message binding = MOKA_TRY(argument.edit("arguments"));
      if (const auto* earlier = std::get_if<Earlier>(&p.value))
        MOKA_TRY(binding.set("name", result_name(earlier->operation, earlier->output)));
      else
        MOKA_TRY(set_value(MOKA_TRY(binding.edit("value")), std::get<Part>(p.value), file));
    }
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      Message output = MOKA_TRY(message.edit("outputs"));
      MOKA_TRY(output.set("name", result_name(i, k)));
      MOKA_TRY(set_type(MOKA_TRY(output.edit("type")), op.outputs[k].type, op.outputs[k].shape));
    }
    out.push_back(std::move(message));
  }
  return out;
}

}  // namespace moka::compress
