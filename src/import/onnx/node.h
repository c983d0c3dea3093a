// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "import/common/expressions.h"
#include "import/onnx/scope.h"

namespace moka::import::onnx {

/// A node while it is imported: its inputs and attributes, and the operations that it becomes. Operators are functions
/// of a node. All functions throw Failure, to which the caller of the operator adds the node.
class Node : public Expressions {
 public:
  Node(Scope& scope, const format::onnx::Node& message, int64_t opset);

  Scope& scope;
  const format::onnx::Node& message;
  int64_t opset;  ///< of the operator's domain

  size_t inputs() const { return message.inputs.size(); }
  size_t outputs() const { return message.outputs.size(); }
  bool has(size_t i) const { return i < inputs() && !message.inputs[i].empty(); }
  bool wants(size_t i) const { return i < outputs() && !message.outputs[i].empty(); }
  Item& item(size_t i) const;
  Value* in(size_t i) const;
  /// Input i, or null if it is omitted.
  Value* maybe(size_t i) const { return has(i) ? in(i) : nullptr; }
  DataType type(size_t i = 0) const { return item(i).type; }
  using Expressions::constant;
  /// The content of input i if it is a constant.
  const Tensor* constant(size_t i) const;
  /// The integers of input i. Refuses an input that is computed.
  [[noreturn]] void computed_parameter(size_t i, std::string_view what) const;
  std::vector<int64_t> integers(size_t i, std::string_view what) const;
  double number(size_t i, std::string_view what) const;
  /// One integer, exact above 2^53.
  int64_t integer(size_t i, std::string_view what) const;
  /// The elements of input i, a scalar or vector of integers, as far as they are known.
  std::vector<Size> sizes(size_t i) const { return sizes_of(in(i)); }

  const Attribute* attribute(std::string_view name) const;
  int64_t integer_or(std::string_view name, int64_t otherwise) const;
  float number_or(std::string_view name, float otherwise) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> integers_or(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<float> numbers_or(std::string_view name, std::vector<float> otherwise = {}) const;
  /// The list that is attribute `name` in older opsets and input i in newer ones; nullopt: neither is given.
  std::optional<std::vector<int64_t>> integers_either(std::string_view name, size_t i) const;

  void set(size_t i, Value* v, DataType type);
  void set(size_t i, Value* v) { set(i, v, type(0)); }
  void set(size_t i, Item item) {
    if (wants(i)) scope.add(message.outputs[i], std::move(item));
  }
  /// A label that an index chooses. `v`: its value, for labels that are numbers.
  void set_label(size_t i, std::shared_ptr<const Labels> labels, Value* v);
};

/// How operators of one name are imported.
struct OperatorImport {
  std::string_view name;
  void (*import)(Node& node);
  std::string_view domain = "";
};

/// nullptr when the operator is unknown.
const OperatorImport* find_operator(std::string_view domain, std::string_view name);

/// x, or bool as int32, on which operations run that MIL lacks for bool.
Value* numbers(const Node& n, Value* x);
/// Wraps integers to the range of an ONNX type below 32 bits, in which they are computed as int32.
Value* wrapped(const Node& n, Value* v, DataType type);
bool is_float(DataType type);
/// Rounds x to values that the ONNX type can hold. `saturate` is for float types of at most 8 bits: numbers beyond the
/// range become the largest one instead of infinity or NaN.
Value* converted_to(const Node& n, Value* x, DataType to, bool saturate);

}  // namespace moka::import::onnx
