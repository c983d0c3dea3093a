// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

bool is_wrong(const Measured* m) { return m != nullptr && m->nan > 0; }

void check_not_a_number(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      bool was_wrong = false;
      for (const ir::Operand& operand : op.operands())
        for (const ir::Value* input : operand.values) was_wrong |= is_wrong(measured(view.wide, input));
      for (size_t i = 0; i < op.output_count(); ++i) {
        const Measured* m = measured(view.wide, op.output(i));
        if (!is_wrong(m) || was_wrong) continue;
        // Real inputs may never have what random ones do, such as a divisor of 0.
        report.add(
            subject.is_measured_with_given ? Level::error : Level::warning, place_of(op),
            {"its result is not a number, also in float32",
             cat(m->nan, " of ", m->count, " elements", subject.is_measured_with_given ? "" : " of random inputs"), ""},
            &view);
      }
    });
}

}  // namespace

Rule rule_not_a_number() {
  return {"not-a-number", Level::error, "Results that are not a number in float32, as measured",
          "Look at the operation's inputs: 0 / 0, infinity - infinity, roots and logarithms of negative numbers.",
          check_not_a_number};
}

}  // namespace moka::linting
