// SPDX-License-Identifier: Apache-2.0
#include "passes/norm_scale.h"

#include "ir/fixed.h"
#include "passes/rewrite.h"

namespace moka::passes {

using namespace ir;

namespace {

/// What `op` applies to `x`, if it is fixed and has one number for each entry of `axis`.
Value* fixed_along(const Op& op, const Value& x, int64_t axis) {
  Value* other = op.input(op.input("x") == &x ? "y" : "x");
  if (other == &x || (tensor_constant(other) == nullptr && !is_from_parameter(*other)) || !other->type.is_tensor() ||
      !other->type.is_concrete() || other->type.dtype() != DType::fp32 || op.output()->type != x.type)
    return nullptr;
  const Shape& shape = other->type.shape();
  const int behind = x.type.rank() - shape.rank();
  const int64_t size = x.type.shape()[static_cast<int>(axis)];
  for (int i = 0; i < shape.rank(); i++)
    if (shape[i] != (i + behind == axis ? size : 1)) return nullptr;
  return size < 0 || shape.count() != size ? nullptr : other;
}

/// Gives `norm` the numbers as a vector.
Status set_vector(PassContext& c, Op& norm, const char* param, Value& numbers) {
  const int64_t size[] = {numbers.type.shape().count()};
  if (const Tensor* t = tensor_constant(&numbers)) {
    Tensor made = MOKA_TRY(Tensor::zeros(DType::fp32, Shape{size[0]}));
    for (int64_t i = 0; i < size[0]; i++) store_f64(made.view(), i, load_f64(t->view(), i));
    norm.set_constant(param, std::move(made));
    return {};
  }
  Builder before = Builder::before(c.table, norm);
  Value* vector = MOKA_TRY(before.op("reshape", {{"x", &numbers}, {"shape", Tensor::i32(size)}}, numbers.name));
  norm.set_input(param, {vector});
  return {};
}

}  // namespace

Status take_scale(PassContext& c, Op& op, std::string_view norm_type,
                  const std::function<std::optional<int64_t>(const Op&)>& axis_of) {
  const char* param = op.type_name() == "mul" ? "gamma" : "beta";
  for (Value* x : {op.input("x"), op.input("y")}) {
    Op* norm = x->producer();
    if (norm == nullptr || norm->type_name() != norm_type || !has_one_use(*x) || !norm->epilogue.empty() ||
        !op.epilogue.empty() || norm->input("beta") != nullptr || norm->input(param) != nullptr)
      continue;
    const auto axis = axis_of(*norm);
    Value* numbers = axis ? fixed_along(op, *x, *axis) : nullptr;
    if (numbers == nullptr) continue;
    MOKA_TRY(set_vector(c, *norm, param, *numbers));
    c.remark(cat(op.name, " into ", norm->name));
    take_name(*x, *op.output());
    replace_and_erase(op, x);
    break;
  }
  return {};
}

}  // namespace moka::passes
