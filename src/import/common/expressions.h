// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/common/failure.h"
#include "ir/program.h"

namespace moka::import {

/// What is known of an element of a vector of sizes while importing.
struct Size {
  bool known = false;
  int64_t value = 0;
  int64_t symbol = ir::kAnyDim;  ///< the unknown dimension that it equals; kAnyDim: none
};
/// What is known of the elements of integer vectors and scalars.
using KnownSizes = std::unordered_map<const ir::Value*, std::vector<Size>>;

/// Operations of MIL as expressions, for what an importer composes. Operations of small constants are computed at once.
/// All functions throw Failure.
class Expressions {
 public:
  using DType = ir::DType;
  using NamedArg = ir::NamedArg;
  using Shape = ir::Shape;
  using Tensor = ir::Tensor;
  using Value = ir::Value;

  /// Appends to the builder's block. `base`: what the names of operations begin with.
  Expressions(ir::Builder& builder, KnownSizes& sizes, std::string base)
      : builder_(builder), sizes_(sizes), base_(std::move(base)) {}

  /// An operation with one output, or its result if all its inputs are small constants.
  Value* op(std::string_view op, std::vector<NamedArg> args) const;
  std::vector<Value*> ops(std::string_view op, std::vector<NamedArg> args) const;
  Value* constant(Tensor t) const;
  Value* integers_constant(const std::vector<int64_t>& v) const { return constant(Tensor::i32(v)); }
  /// A number of the element type of `like`.
  Value* scalar(double v, const Value* like) const;
  NamedArg arg(std::string name, double v, const Value* like) const;

  Value* unary(std::string_view o, Value* x) const { return op(o, {{"x", x}}); }
  Value* binary(std::string_view o, Value* x, Value* y) const { return op(o, {{"x", x}, {"y", y}}); }
  Value* add(Value* x, Value* y) const { return binary("add", x, y); }
  Value* sub(Value* x, Value* y) const { return binary("sub", x, y); }
  Value* mul(Value* x, Value* y) const { return binary("mul", x, y); }
  Value* div(Value* x, Value* y) const { return binary("real_div", x, y); }
  Value* add(Value* x, double y) const { return add(x, scalar(y, x)); }
  Value* sub(double x, Value* y) const { return sub(scalar(x, y), y); }
  Value* mul(Value* x, double y) const { return mul(x, scalar(y, x)); }
  Value* log(Value* x) const { return op("log", {{"x", x}, arg("epsilon", 0, x)}); }
  Value* select(Value* cond, Value* a, Value* b) const { return op("select", {{"cond", cond}, {"a", a}, {"b", b}}); }
  Value* cast(Value* x, DType type) const;
  /// Calls an operation that accepts no bool, or no integers: casts the inputs to a type it accepts and the result
  /// back.
  Value* as(DType type, Value* x) const { return cast(x, type); }
  Value* transpose(Value* x, const std::vector<int64_t>& perm) const;
  Value* reshape(Value* x, const std::vector<int64_t>& dims) const;
  /// Reshapes to computed sizes, `shape`, of which `sizes` are known.
  Value* reshape(Value* x, Value* shape, const std::vector<Size>& sizes) const;
  Value* expand_dims(Value* x, const std::vector<int64_t>& axes) const;
  Value* squeeze(Value* x, const std::vector<int64_t>& axes) const;
  Value* concat(const std::vector<Value*>& values, int64_t axis) const;
  Value* broadcast(Value* x, const std::vector<int64_t>& dims) const;
  Value* reduce(std::string_view o, Value* x, const std::vector<int64_t>& axes, bool keep) const;
  Value* slice(Value* x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1) const;
  Value* matmul(Value* x, Value* y, bool transpose_x = false, bool transpose_y = false) const;
  /// The sizes of x as an int32 vector, constant where they are known.
  Value* shape_of(Value* x) const;
  /// A whole dimension of x as an int32 scalar.
  Value* size_of(Value* x, int axis) const;
  int rank(const Value* x) const;
  /// The shape of x. Refuses unknown sizes, naming `what` needs them.
  const Shape& known_shape(const Value* x, std::string_view what) const;
  int axis(int64_t axis, const Value* x) const;
  std::vector<int64_t> axes(std::vector<int64_t> list, const Value* x) const;

  /// The elements of a scalar or vector of integers, as far as they are known.
  std::vector<Size> sizes_of(const Value* v) const;
  void set_sizes(const Value* v, std::vector<Size> sizes) const { sizes_[v] = std::move(sizes); }

  [[noreturn]] void unsupported(std::string_view what) const { refuse(ErrorCode::unsupported, what); }
  [[noreturn]] void malformed(std::string_view what) const { refuse(ErrorCode::malformed, what); }

 protected:
  /// The name of an operation of type `o`.
  std::string name(std::string_view o) const;

 private:
  bool fold(ir::Op* op, std::vector<Value*>& out) const;

  ir::Builder& builder_;
  KnownSizes& sizes_;
  std::string base_;
};

}  // namespace moka::import
