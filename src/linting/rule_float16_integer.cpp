// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

/// Between whole numbers beyond this, float16 has gaps.
constexpr double kWhole = 2048;

bool makes_whole_numbers(const ir::Op& op) {
  if (is_op(&op, "range_1d")) return true;
  if (!is_op(&op, "cast")) return false;
  const ir::Type& from = op.input("x")->type;
  return from.is_tensor() && ir::is_integer(from.dtype());
}

void check_float16_integer(const Subject& subject, Report& report) {
  if (subject.is_network()) return;  // all numbers of a network are floats
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      if (op.output_count() == 0 || !subject.in_half(*op.output()) || !makes_whole_numbers(op)) return;
      const Interval bounds = view.bounds->of(op.output());
      const Measured* m = measured(view.wide, op.output());
      const bool is_known = bounds.is_bounded() && bounds.grip != Grip::wide && bounds.magnitude() > kWhole;
      const bool is_seen = m != nullptr && m->magnitude() > kWhole;
      if (!is_known && !is_seen) return;
      report.add(Level::warning, place_of(op),
                 {"float16 has only every second, fourth, ... of the whole numbers beyond 2048",
                  is_seen ? cat("measured ", range(m->least, m->greatest))
                          : cat("the allowed inputs give ", range(bounds.low, bounds.high)),
                  ""},
                 &view);
    });
}

}  // namespace

Rule rule_float16_integer() {
  return {"float16-integer", Level::warning, "Positions, counts and identifiers beyond 2048 in float16",
          "Keep them in int32, or in float32 up to where they are used.", check_float16_integer};
}

}  // namespace moka::linting
