// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"
#include "linting/narrowing.h"

namespace moka::linting {
namespace {

/// The number farthest outside of the type that the predictions show; nullopt: none is outside.
std::optional<double> seen(const FunctionView& view, const Narrowing& n) {
  const Measured* m = n.from == nullptr ? nullptr : measured(view.wide, n.from);
  const Interval type = numbers_of(n.to);
  if (m == nullptr || (m->least >= type.low && m->greatest <= type.high)) return std::nullopt;
  return m->greatest > type.high ? m->greatest : m->least;
}

/// Whether the user declared the numbers.
bool is_declared(const Subject& subject, const Narrowing& n) {
  const ir::Value* input = n.input();
  return n.is_certain() && (input == nullptr ? !subject.ranged.empty() : subject.ranged.contains(input->name));
}

void check_narrow_integer(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for (const Narrowing& n : narrowings(view.function->body(), *view.bounds)) {
      const std::optional<double> shown = is_declared(subject, n) ? std::nullopt : seen(view, n);
      const bool is_large = n.gather != nullptr && static_cast<double>(n.rows - 1) > numbers_of(n.to).high;
      Level level = shown || n.is_certain() || is_large ? Level::warning : Level::note;
      if (is_declared(subject, n) || (shown && subject.is_measured_with_given)) level = Level::error;
      report.add(level, place_of(*n.op), {n.reason(), n.evidence(shown), ""}, &view);
    }
}

}  // namespace

Rule rule_narrow_integer() {
  return {"narrow-integer", Level::error,
          "Conversions to integers of 8 or 16 bits of numbers that nothing keeps in their range: larger ones wrap",
          "Convert without coremltools' pass common::add_int16_cast (PassPipeline.remove_passes), or clip the numbers "
          "before the operation.",
          check_narrow_integer};
}

}  // namespace moka::linting
