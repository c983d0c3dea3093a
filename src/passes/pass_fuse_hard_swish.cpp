// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "passes/pass.h"
#include "passes/rewrite.h"

/// Replaces x times its hard sigmoid by one operation. PyTorch's converter writes the hard sigmoid as `sigmoid_hard` of
/// a `thresholded_relu` at -3, others as relu6(x + 3) / 6. Only in float32, because in other types the results would be
/// rounded differently.
namespace moka::passes {

namespace {

using namespace ir;

/// Whether a number is `wanted`, possibly rounded to float16.
bool is_near(std::optional<double> v, double wanted) { return v && std::fabs(*v - wanted) <= std::fabs(wanted) / 2048; }

/// If one of two operands is near the scalar `wanted`, the other operand.
Value* beside(const Op* op, double wanted, bool commutes = true) {
  if (op == nullptr) return nullptr;
  if (is_near(number_of(*op, "y"), wanted)) return op->input("x");
  return commutes && is_near(number_of(*op, "x"), wanted) ? op->input("y") : nullptr;
}

/// The operand of the hard sigmoid that `gate` is; nullptr: it is none.
Value* gated_value(const Value* gate) {
  if (const Op* hard = made_by(gate, "sigmoid_hard"))
    return is_near(number_of(*hard, "alpha"), 1.0 / 6) && is_near(number_of(*hard, "beta"), 0.5) ? hard->input("x")
                                                                                                 : nullptr;
  Value* six = beside(made_by(gate, "mul"), 1.0 / 6);
  if (six == nullptr) six = beside(made_by(gate, "real_div"), 6, false);
  const Op* relu6 = made_by(six, "relu6");
  return relu6 == nullptr ? nullptr : beside(made_by(relu6->input("x"), "add"), 3);
}

Status fuse_hard_swish(PassContext& c) {
  Status status;
  for_each_op(c.function.body(), [&](Op& op) {
    if (!status.ok() || op.type_name() != "mul" || !op.epilogue.empty()) return;
    for (auto [a, b] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
      Value* x = op.input(a);
      if (gated_value(op.input(b)) != x || !(x->type == op.output()->type) || !x->type.is_tensor() ||
          x->type.dtype() != DType::fp32)
        continue;
      // Below -3 the product is 0 for any x.
      if (const Op* cut = made_by(x, "thresholded_relu"); cut != nullptr && is_near(number_of(*cut, "alpha"), -3))
        x = cut->input("x");
      Builder before = Builder::before(c.table, op);
      auto y = before.op("moka_hard_swish", {{"x", x}}, op.name);
      if (!y.ok()) {
        status = std::move(y).error();
        return;
      }
      c.remark(cat(op.name, " and its gate into one hard swish"));
      take_name(**y, *op.output());
      replace_and_erase(op, *y);
      return;
    }
  });
  return status;
}

}  // namespace

Pass pass_fuse_hard_swish() { return {"fuse_hard_swish", fuse_hard_swish}; }

}  // namespace moka::passes
