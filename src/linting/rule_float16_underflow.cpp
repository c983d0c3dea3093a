// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

bool vanishes(const Measured* m) { return m != nullptr && m->nonzero > 0 && m->vanishing == m->nonzero; }

void check_float16_underflow(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      for (size_t i = 0; i < op.output_count(); ++i) {
        const ir::Value& value = *op.output(i);
        const Measured* m = measured(view.wide, &value);
        if (!subject.in_half(value) || !vanishes(m)) continue;
        bool is_first = true;
        for (const ir::Operand& operand : op.operands())
          for (const ir::Value* input : operand.values) is_first &= !vanishes(measured(view.wide, input));
        if (!is_first) continue;
        report.add(Level::warning, place_of(op),
                   {"its whole result becomes 0 in float16",
                    cat("measured ", range(m->least, m->greatest), " in float32; the least float16 is 6e-8"), ""},
                   &view);
      }
    });
}

}  // namespace

Rule rule_float16_underflow() {
  return {"float16-underflow", Level::warning, "Results that are too small for float16 and become 0, as measured",
          "Scale the values up before the operation, or keep it in float32.", check_float16_underflow};
}

}  // namespace moka::linting
