// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/onnx/graph.h"

namespace moka::compiler::onnx {

/// The decompressed numbers of a constant or a compressed weight. nullopt: the value is neither.
std::optional<ir::Tensor> evaluated(const ir::Value* v);

/// An operation being written. The first failure is kept, and accessors then return harmless values, so that writers
/// need not check every step; `refused` tells.
class Call {
 public:
  Call(Graph& graph, const ir::Op& op);

  Graph& graph;
  const ir::Op& op;
  const ir::OpCall& known() const { return static_.call(); }

  bool has(const char* param) const { return op.input(param) != nullptr; }
  const ir::Type& type(const char* param) const { return op.input(param)->type; }
  int rank(const char* param);
  DType dtype(const char* param) const { return type(param).dtype(); }
  const ir::Type& out(size_t i = 0) const { return op.output(i)->type; }
  bool is_constant(const char* param) const { return known().is_known(param); }

  Name x(const char* param = "x");  ///< the tensor of an input or of its default; empty: absent
  Name x(const ir::Value* v);
  Name int64(const char* param);
  /// The input as another type. Converts constants now.
  Name x_as(const char* param, DType type);
  ir::Tensor converted(const ir::Tensor& from, DType type);
  /// The constant's content. Weights that are still compressed are expanded. nullopt: not a constant.
  std::optional<ir::Tensor> constant(const char* param);

  int64_t integer(const char* param);
  double number(const char* param);
  bool flag(const char* param);
  std::string text(const char* param);
  std::vector<int64_t> ints(const char* param);
  int axis(const char* param, int rank);  ///< not negative

  Name node(const char* type, std::vector<Name> inputs, std::vector<ox::Attribute> attributes = {});
  std::vector<Name> nodes(const char* type, std::vector<Name> inputs, std::vector<ox::Attribute> attributes,
                          size_t outputs, const char* domain = "");
  Name ml(const char* type, std::vector<Name> inputs, std::vector<ox::Attribute> attributes = {});
  Name scalar(DType type, double v) { return graph.number(type, v); }
  Name i64(std::vector<int64_t> v) { return graph.int64s(v); }
  Name cast(const Name& x, DType to);
  Name cast(const Name& x, DataType to);
  /// A size of 0 stands for the size of x on that axis; with `empty`, for 0.
  Name reshape(const Name& x, std::vector<int64_t> dims, bool empty = false);
  Name transpose(const Name& x, std::vector<int64_t> perm);
  Name unsqueeze(const Name& x, std::vector<int64_t> axes) { return node("Unsqueeze", {x, i64(std::move(axes))}); }
  Name squeeze(const Name& x, std::vector<int64_t> axes) { return node("Squeeze", {x, i64(std::move(axes))}); }
  Name slice(const Name& x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
  /// A reduction, whose axes are an attribute before opset 18.
  Name reduce(const char* type, const Name& x, const std::vector<int64_t>& axes, bool keep);
  /// Adds elements of `value` around `x`. `pads`: the numbers of elements before each axis, then after each axis.
  Name pad(const Name& x, const std::vector<int64_t>& pads, double value, DType type);

  /// Sets an output. The tensor gets the output's name if this operation made it.
  void set(const Name& name, size_t i = 0);
  void set_int64(const Name& name, size_t i = 0);

  bool wants(int opset) { return graph.wants(opset); }
  /// Refuses unless the model may use the opset.
  bool needs(int opset);
  void refuse(std::string reason);
  bool refused() const { return reason_.has_value(); }
  const std::optional<std::string>& reason() const { return reason_; }
  template <class T>
  T take(Result<T> r, T otherwise = {}) {
    if (r.ok()) return std::move(r).value();
    refuse(r.error().to_string());
    return otherwise;
  }

  std::vector<Unexpressed> inner;  ///< of the operation's blocks
  int inner_operations = 0;

 private:
  size_t first_;  ///< its first node in the open graph
  ir::StaticCall static_;
  std::optional<std::string> reason_;
};

/// How an operation of MIL is written.
struct OpWriter {
  std::string_view op;
  void (*write)(Call& call);
};

/// Each file ops/<family>.cpp defines `writers_<family>()`. The build makes the list.
std::span<const std::span<const OpWriter>> writers();
/// nullptr: there is none.
const OpWriter* find_writer(std::string_view op);

/// Writes the operations of a block. Adds those that have no form.
void write_block(Graph& graph, const ir::Block& block, std::vector<Unexpressed>& missing, int& operations);

}  // namespace moka::compiler::onnx
