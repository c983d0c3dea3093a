// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "linting/lint.h"

namespace moka::linting {
namespace {

/// A bound that only the intervals know counts when data came this close to the limit.
constexpr double kValueMargin = 8;

/// Whether the operation's inputs are in order, so that it is the first one that is not.
bool starts_here(const ir::Op& op, const std::function<bool(const ir::Value*)>& is_bad) {
  for (const ir::Operand& operand : op.operands())
    for (const ir::Value* value : operand.values)
      if (value->constant() == nullptr && (is_bad(value) || is_bad(behind_moves(value)))) return false;
  return true;
}

bool is_outside(const Measured* m) { return m != nullptr && (m->magnitude() > kHalfMax || m->infinite + m->nan > 0); }

/// Reports an overflow that the predictions show. Returns whether they show one.
bool check_measured(const Subject& subject, const FunctionView& view, const ir::Op& op, const ir::Value& value,
                    Report& report) {
  const Measured* wide = measured(view.wide, &value);
  const Measured* half = measured(view.half, &value);
  const auto is_bad = [&](const ir::Value* v) {
    return subject.in_half(*v) && (is_outside(measured(view.wide, v)) || is_outside(measured(view.half, v)));
  };
  if (!is_bad(&value)) return false;
  // Infinities and NaN in float32 as well are not caused by float16.
  if (wide != nullptr && wide->nan + wide->infinite > 0) return true;
  if (!starts_here(op, is_bad)) return true;
  const bool overflows = wide != nullptr && wide->magnitude() > kHalfMax;
  std::string evidence;
  if (wide != nullptr) evidence = cat("measured ", range(wide->least, wide->greatest), " in float32");
  if (half != nullptr && half->infinite + half->nan > 0)
    evidence += cat(evidence.empty() ? "" : "; ", "in float16 ", half->infinite, " infinite and ", half->nan,
                    " not a number of ", half->count);
  // Networks may run in float32, and random inputs may be larger than real ones.
  const bool may_not = subject.is_network() && !subject.is_measured_with_given;
  report.add(may_not ? Level::warning : Level::error, place_of(op),
             {overflows ? "its result exceeds 65504, the largest float16"
                        : "its result is infinite or not a number in float16 alone",
              evidence, ""},
             &view);
  return true;
}

void check_bounds(const Subject& subject, const FunctionView& view, const ir::Op& op, const ir::Value& value,
                  Report& report) {
  const Interval interval = view.bounds->of(&value);
  const auto is_bad = [&](const ir::Value* v) {
    const Interval i = view.bounds->of(v);
    return subject.in_half(*v) && i.is_bounded() && i.magnitude() > kHalfMax;
  };
  if (!interval.is_bounded() || interval.magnitude() <= kHalfMax || !starts_here(op, is_bad)) return;
  const std::string evidence = cat("the allowed inputs give ", range(interval.low, interval.high));
  if (interval.low > kHalfMax || interval.high < -kHalfMax)
    report.add(Level::error, place_of(op), {"its result always exceeds 65504, the largest float16", evidence, ""},
               &view);
  else if (interval.grip != Grip::wide)
    report.add(Level::warning, place_of(op),
               {"an allowed input makes its result exceed 65504, the largest float16", evidence, ""}, &view);
  else if (const Measured* m = measured(view.wide, &value); m != nullptr && m->magnitude() * kValueMargin > kHalfMax)
    report.add(
        Level::note, place_of(op),
        {"other inputs may make its result exceed 65504, the largest float16",
         cat("measured ", range(m->least, m->greatest), "; the bounds are ", range(interval.low, interval.high)), ""},
        &view);
}

void check_float16_overflow(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      for (size_t i = 0; i < op.output_count(); ++i) {
        const ir::Value& value = *op.output(i);
        if (value.constant() != nullptr || !subject.in_half(value)) continue;
        if (!check_measured(subject, view, op, value, report)) check_bounds(subject, view, op, value, report);
      }
    });
}

}  // namespace

Rule rule_float16_overflow() {
  return {"float16-overflow", Level::error,
          "Results beyond 65504, the largest float16: measured, or certain from weights and the inputs' ranges",
          "Scale the values down before the operation, or keep it in float32 (op_selector of coremltools' "
          "FP16ComputePrecision).",
          check_float16_overflow};
}

}  // namespace moka::linting
