// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "import/onnx/import.h"
#include "ir/evaluate.h"

/// ONNX models for tests, built of messages.
namespace moka::import::onnx {

namespace format = moka::format::onnx;
using ir::DType;
using ir::Shape;
using ir::Tensor;

constexpr auto kFloat = format::DataType::float32;
constexpr auto kInt32 = format::DataType::int32;
constexpr auto kInt64 = format::DataType::int64;

inline format::Attribute integer(const std::string& name, int64_t v) {
  format::Attribute a;
  a.name = name, a.kind = format::Attribute::Kind::integer, a.integer = v;
  return a;
}

inline format::Attribute number(const std::string& name, float v) {
  format::Attribute a;
  a.name = name, a.kind = format::Attribute::Kind::number, a.number = v;
  return a;
}

inline format::Attribute text(const std::string& name, const std::string& v) {
  format::Attribute a;
  a.name = name, a.kind = format::Attribute::Kind::string, a.string = v;
  return a;
}

inline format::Attribute integers(const std::string& name, std::vector<int64_t> v) {
  format::Attribute a;
  a.name = name, a.kind = format::Attribute::Kind::integers, a.integers = std::move(v);
  return a;
}

inline format::Attribute attribute(const std::string& name, format::Tensor v) {
  format::Attribute a;
  a.name = name, a.kind = format::Attribute::Kind::tensor, a.tensors = {std::move(v)};
  return a;
}

inline format::Node node(const std::string& type, std::vector<std::string> in, std::vector<std::string> out,
                         std::vector<format::Attribute> attributes = {}) {
  format::Node n;
  n.op_type = type, n.inputs = std::move(in), n.outputs = std::move(out), n.attributes = std::move(attributes);
  return n;
}

/// -1 is a dimension without a value, whose name is "N".
inline format::ValueInfo tensor(const std::string& name, format::DataType type, const std::vector<int64_t>& dims) {
  format::ValueInfo v;
  v.name = name;
  v.type.kind = format::Type::Kind::tensor;
  v.type.element = type;
  v.type.shape.emplace();
  for (const int64_t d : dims) {
    format::Dimension dim;
    if (d < 0)
      dim.param = "N";
    else
      dim.value = d;
    v.type.shape->push_back(dim);
  }
  return v;
}

template <class T>
format::Tensor weight(const std::string& name, format::DataType type, std::vector<int64_t> dims,
                      const std::vector<T>& v) {
  format::Tensor t;
  t.name = name, t.type = type, t.dims = std::move(dims);
  t.raw = Bytes::copy_of(std::as_bytes(std::span(v)));
  return t;
}

inline format::ModelFile model(std::vector<format::Node> nodes, std::vector<format::ValueInfo> in,
                               std::vector<format::ValueInfo> out, std::vector<format::Tensor> weights = {},
                               int64_t opset = 17) {
  format::ModelFile file;
  file.model.opsets = {{"", opset}, {"ai.onnx.ml", 5}, {"com.microsoft", 1}};
  file.model.graph.nodes = std::move(nodes);
  file.model.graph.inputs = std::move(in);
  file.model.graph.outputs = std::move(out);
  file.model.graph.initializers = std::move(weights);
  return file;
}

inline Imported imported(const format::ModelFile& file, const Options& options = {}) {
  auto made = import_model(file, options);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return std::move(made).value();
}

inline std::string refusal(const format::ModelFile& file, const Options& options = {}) {
  auto made = import_model(file, options);
  return made.ok() ? "accepted" : made.error().to_string();
}

template <class T>
std::vector<T> elements(const Tensor& t) {
  const auto values = t.as<T>();
  return {values.begin(), values.end()};
}

inline std::vector<Tensor> answers(const Imported& m, const std::vector<Tensor>& inputs) {
  const std::vector<ir::RuntimeValue> given(inputs.begin(), inputs.end());
  auto out = ir::evaluate(*m.program.functions[0], given);
  EXPECT_TRUE(out.ok()) << out.error().to_string();
  std::vector<Tensor> tensors;
  for (const ir::RuntimeValue& v : *out) tensors.push_back(v.tensor);
  return tensors;
}

inline std::vector<float> run(const Imported& m, const Tensor& x) { return elements<float>(answers(m, {x})[0]); }

}  // namespace moka::import::onnx
