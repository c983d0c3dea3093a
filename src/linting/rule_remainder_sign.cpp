// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

void check_remainder_sign(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      if (!is_op(&op, "mod")) return;
      const Interval x = view.bounds->of(op.input("x")), y = view.bounds->of(op.input("y"));
      const bool is_same_sign = (x.low >= 0 && y.low >= 0) || (x.high <= 0 && y.high <= 0);
      if (is_same_sign) return;
      const char* side = x.low < 0 ? "x" : "y";
      report.add(Level::note, place_of(op),
                 {"its remainder of operands of different signs depends on the system: the definition gives it the "
                  "sign of y, a Mac was seen to give it that of x",
                  cat("'", side, "' may be negative"), ""},
                 &view);
    });
}

}  // namespace

Rule rule_remainder_sign() {
  return {"remainder-sign", Level::note, "Remainders of operands that may have different signs, where systems differ",
          "Keep both operands from being negative, or write x - y * floor(x / y).", check_remainder_sign};
}

}  // namespace moka::linting
