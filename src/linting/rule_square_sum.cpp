// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "linting/lint.h"

namespace moka::linting {
namespace {

constexpr double kSumMargin = 4;  ///< squares this near to the limit count as seen

/// The value whose squares the operation adds up; nullptr: it adds up no squares.
const ir::Value* squared(const ir::Op& op) {
  if (is_op(&op, "reduce_sum_square") || is_op(&op, "reduce_l2_norm") || is_op(&op, "l2_norm")) return op.input("x");
  if (!is_op(&op, "reduce_sum") && !is_op(&op, "reduce_mean")) return nullptr;
  const ir::Op* square = computed_by(op.input("x"));
  if (is_op(square, "square")) return square->input("x");
  if (is_op(square, "pow") && uniform_constant(square->input("y")) == 2.0) return square->input("x");
  if (is_op(square, "mul") && square->input("x") == square->input("y")) return square->input("x");
  return nullptr;
}

/// x / max(|x|) is at most 1.
bool is_scaled(const ir::Value* x) {
  const ir::Op* division = computed_by(x);
  if (!is_op(division, "real_div") && !is_op(division, "mul")) return false;
  for (const char* side : {"x", "y"})
    for (const ir::Op* op = computed_by(division->input(side)); op != nullptr; op = computed_by(op->input("x"))) {
      if (is_op(op, "reduce_max")) return true;
      if (!is_op(op, "inverse") && !is_op(op, "maximum") && !is_op(op, "add") && !is_op(op, "clip")) break;
    }
  return false;
}

void check_square_sum(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      const ir::Value* x = squared(op);
      if (x == nullptr || !subject.in_half(*op.output()) || is_scaled(x)) return;
      const bool is_mean = is_op(&op, "reduce_mean");
      double n = 1;
      if (!is_mean && x->type.is_ranked() && x->type.is_concrete() && op.output()->type.is_concrete())
        n = static_cast<double>(x->type.shape().count()) /
            std::max(1.0, static_cast<double>(op.output()->type.shape().count()));
      const Interval bounds = view.bounds->of(x);
      if (bounds.magnitude() * bounds.magnitude() * n <= kHalfMax) return;
      const Measured* m = measured(view.wide, x);
      const Measured* sum = measured(view.wide, op.output());
      const double reached = m == nullptr ? 0 : m->magnitude() * m->magnitude();
      double total = reached;
      if (sum != nullptr && is_op(&op, "reduce_l2_norm")) total = std::max(total, sum->greatest * sum->greatest);
      const bool is_seen = total * kSumMargin > kHalfMax;
      const bool is_known = bounds.is_bounded() && bounds.grip != Grip::wide;
      std::string evidence = is_known ? cat("the allowed inputs give ", range(bounds.low, bounds.high))
                                      : std::string("its input has no bound");
      if (m != nullptr) evidence += cat("; measured ", range(m->least, m->greatest));
      report.add(is_seen || is_known ? Level::warning : Level::note, place_of(op),
                 {cat("it adds up squares, which overflow in float16 where its input exceeds ",
                      number(std::sqrt(kHalfMax / n))),
                  evidence, ""},
                 &view);
    });
}

}  // namespace

Rule rule_square_sum() {
  return {"square-sum", Level::warning, "Squares that are added up, in norms and variances, which overflow in float16",
          "Divide the input by its largest magnitude first, and multiply the root by it.", check_square_sum};
}

}  // namespace moka::linting
