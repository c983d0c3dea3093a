// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/half.h"
#include "linting/lint.h"

namespace moka::linting {
namespace {

bool vanishes(double v) { return static_cast<float>(half(v)) == 0; }

/// Norms have a parameter for it.
void check_norm(const FunctionView& view, const ir::Op& op, Report& report) {
  const std::optional<double> epsilon = uniform_constant(op.input("epsilon"));
  if (!epsilon || !vanishes(*epsilon)) return;
  report.add(Level::warning, place_of(op),
             {"its epsilon is 0 in float16, so that equal elements are divided by 0",
              cat("epsilon is ", number(*epsilon), "; the least float16 is 6e-8"), ""},
             &view);
}

/// A divisor, or what a root or logarithm reads, may be kept from 0 by another operation.
void check_guard(const FunctionView& view, const ir::Op& op, const ir::Value* divisor, Report& report) {
  const ir::Op* guard = computed_by(divisor);
  if (is_op(guard, "sqrt") || is_op(guard, "pow")) guard = computed_by(guard->input("x"));
  if (!is_op(guard, "add") && !is_op(guard, "maximum") && !is_op(guard, "clip")) return;
  for (const char* side : {"x", "y", "alpha"}) {
    const std::optional<double> epsilon = uniform_constant(guard->input(side));
    if (!epsilon || *epsilon < 0) continue;
    // Without the epsilon, the other side may be 0.
    const char* other = side[0] == 'x' ? "y" : "x";
    const Interval rest = view.bounds->of(guard->input(other));
    if (rest.low > 0 || rest.high < 0) return;
    if (vanishes(*epsilon))
      report.add(Level::warning, place_of(*guard),
                 {cat("its constant, which keeps ", place_of(op), " from 0, is 0 in float16"),
                  cat("'", side, "' is ", number(*epsilon), "; the least float16 is 6e-8"), ""},
                 &view);
    else if (*epsilon < kHalfNormal)
      report.add(Level::note, place_of(*guard),
                 {cat("its constant, which keeps ", place_of(op), " from 0, is subnormal in float16"),
                  cat("'", side, "' is ", number(*epsilon), "; the Neural Engine may take it as 0"), ""},
                 &view);
    return;
  }
}

void check_small_epsilon(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      if (op.output_count() == 0 || !subject.in_half(*op.output())) return;
      if (is_op(&op, "layer_norm") || is_op(&op, "instance_norm") || is_op(&op, "l2_norm"))
        check_norm(view, op, report);
      if (is_op(&op, "rsqrt") || is_op(&op, "inverse") || is_op(&op, "log"))
        check_guard(view, op, op.input("x"), report);
      if (is_op(&op, "real_div")) check_guard(view, op, op.input("y"), report);
    });
}

}  // namespace

Rule rule_small_epsilon() {
  return {"small-epsilon", Level::warning, "Epsilons of norms, divisions, roots and logarithms that float16 makes 0",
          "Use an epsilon of at least 1e-4, or keep the operation in float32.", check_small_epsilon};
}

}  // namespace moka::linting
