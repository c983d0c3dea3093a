// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "linting/bounds.h"

/// A select whose condition compares a value with a number bounds that value in either branch.
namespace moka::linting {
namespace {

/// What a condition says of a value: below a number or, otherwise, above it.
struct Comparison {
  const ir::Value* value;
  double number;
  bool below, equal;  ///< `equal`: or at it

  Comparison negated() const { return {value, number, !below, !equal}; }
};

std::optional<double> constant_number(Interval x) {
  return x.low == x.high && x.is_bounded() ? std::optional(x.low) : std::nullopt;
}

std::optional<Comparison> comparison(const ir::Value* condition, const Bounds& bounds) {
  const ir::Op* test = condition == nullptr ? nullptr : condition->producer();
  if (test == nullptr) return std::nullopt;
  const std::string_view type = test->type_name();
  const bool less = type.starts_with("less"), equal = type.ends_with("_equal");
  if (type != "less" && type != "less_equal" && type != "greater" && type != "greater_equal") return std::nullopt;
  const ir::Value *x = test->input("x"), *y = test->input("y");
  if (const auto number = constant_number(bounds.of(y))) return Comparison{x, *number, less, equal};
  if (const auto number = constant_number(bounds.of(x))) return Comparison{y, *number, !less, equal};
  return std::nullopt;
}

/// The numbers of the value for which the comparison holds; nothing when it never does.
std::optional<Interval> refined(const Comparison& c, Interval x) {
  const ir::Type& type = c.value->type;
  const bool whole = type.is_tensor() && !ir::is_float(type.dtype());
  double end = c.number;
  if (whole && c.equal) end = c.below ? std::floor(end) : std::ceil(end);
  if (whole && !c.equal) end = c.below ? std::ceil(end) - 1 : std::floor(end) + 1;
  if (c.below ? end >= x.high : end <= x.low) {
    const bool touches = (c.below ? x.high : x.low) == c.number;
    return touches && !c.equal && x.low == x.high ? std::nullopt : std::optional(x);
  }
  (c.below ? x.high : x.low) = end;
  if (x.low > x.high || (x.low == x.high && !whole && !c.equal)) return std::nullopt;
  // Computed integers may skip the number.
  return at_most(x, whole && c.value->producer() != nullptr ? Grip::wide : Grip::reached);
}

std::optional<Interval> branch(const Call& c, std::string_view parameter, const std::optional<Comparison>& known) {
  if (!known) return c.in(parameter);
  const std::optional<Interval> x = refined(*known, c.bounds.of(known->value));
  if (!x) return std::nullopt;
  return c.bounds.assuming(known->value, *x).of(c.op.input(parameter));
}

Interval select(const Call& c) {
  const std::optional<Comparison> known = comparison(c.op.input("cond"), c.bounds);
  const auto a = branch(c, "a", known);
  const auto b = branch(c, "b", known ? std::optional(known->negated()) : std::nullopt);
  if (a && b) return hull(*a, *b);
  return at_most(a ? *a : b ? *b : hull(c.in("a"), c.in("b")), Grip::reached);
}

}  // namespace

const Transfers& selection_transfers() {
  static const Transfers all{{"select", select}};
  return all;
}

}  // namespace moka::linting
