#include "passes/norm_scale.h"

#include "passes/rewrite.h"

namespace moka::passes {

using namespace ir;

namespace {

/// The constant that `op` applies to `x`, with one number for each entry of `axis`.
std::optional<Tensor> constant_along(const Op& op, const Value& x, int64_t axis) {
  const Value* other = op.input(op.input("x") == &x ? "y" : "x");
  const Tensor* t = other == &x ? nullptr : tensor_constant(other);
  if (t == nullptr || t->dtype() != DType::fp32 || op.output()->type != x.type) return std::nullopt;
  const int behind = x.type.rank() - t->shape().rank();
  const int64_t size = x.type.shape()[static_cast<int>(axis)];
  for (int i = 0; i < t->shape().rank(); i++)
    if (t->shape()[i] != (i + behind == axis ? size : 1)) return std::nullopt;
  if (size < 0 || t->count() != size) return std::nullopt;
  auto made = Tensor::zeros(DType::fp32, Shape{size});
  if (!made.ok()) return std::nullopt;
  for (int64_t i = 0; i < size; i++) store_f64(made->view(), i, load_f64(t->view(), i));
  return *made;
}

}  // namespace

void take_scale(PassContext& c, Op& op, std::string_view norm_type,
                const std::function<std::optional<int64_t>(const Op&)>& axis_of) {
  const std::string_view param = op.type_name() == "mul" ? "gamma" : "beta";
  for (Value* x : {op.input("x"), op.input("y")}) {
    Op* norm = x->producer();
    if (norm == nullptr || norm->type_name() != norm_type || !has_one_use(*x) || !norm->epilogue.empty() ||
        !op.epilogue.empty() || norm->input("beta") != nullptr || norm->input(param) != nullptr)
      continue;
    const auto axis = axis_of(*norm);
    const auto constant = axis ? constant_along(op, *x, *axis) : std::nullopt;
    if (!constant) continue;
    norm->set_constant(param, *constant);
    c.remark(cat(op.name, " into ", norm->name));
    take_name(*x, *op.output());
    replace_and_erase(op, x);
    return;
  }
}

}  // namespace moka::passes
