// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "linting/lint.h"

namespace moka::linting {
namespace {

/// How many elements are added up before the division; 0: not known, or another operation.
double addends(const ir::Op& op) {
  const ir::Type &x = op.input("x")->type, &y = op.output()->type;
  if (is_op(&op, "reduce_mean")) {
    if (!x.is_tensor() || !x.is_concrete() || !y.is_concrete()) return 0;
    return static_cast<double>(x.shape().count()) / std::max(1.0, static_cast<double>(y.shape().count()));
  }
  const ir::Value* sizes = op.input("kernel_sizes");
  if (!is_op(&op, "avg_pool") || sizes == nullptr || sizes->constant() == nullptr) return 0;
  double n = 1;
  const ir::TensorView view = sizes->constant()->tensor.view();
  for (int64_t i = 0; i < view.count(); ++i) n *= ir::load_f64(view, i);
  return n;
}

void check_float16_sum(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      if (!is_op(&op, "reduce_mean") && !is_op(&op, "avg_pool")) return;
      if (!subject.in_half(*op.output())) return;
      const double n = addends(op);
      const Measured* m = measured(view.wide, op.output());
      if (m == nullptr || m->magnitude() * n <= kHalfMax || m->magnitude() > kHalfMax) return;
      report.add(Level::warning, place_of(op),
                 {"the sum before its division exceeds 65504, the largest float16",
                  cat("a mean of ", number(m->magnitude()), " of ", number(n), " elements is a sum of ",
                      number(m->magnitude() * n)),
                  ""},
                 &view);
    });
}

}  // namespace

Rule rule_float16_sum() {
  return {"float16-sum", Level::warning, "Means whose sum exceeds 65504 before the division, as measured",
          "Take the mean in steps, one axis at a time, or scale the input down first.", check_float16_sum};
}

}  // namespace moka::linting
