// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "linting/bounds.h"

namespace moka::linting {
namespace {

bool is_one_number(Interval x) { return x.low == x.high && x.is_bounded(); }

double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

/// The ends of f over both ends of both.
template <class F>
Interval corners(Interval x, Interval y, const F& f) {
  const double all[] = {f(x.low, y.low), f(x.low, y.high), f(x.high, y.low), f(x.high, y.high)};
  Interval out{*std::min_element(all, all + 4), *std::max_element(all, all + 4), Grip::wide};
  // A constant number keeps the grip of the other interval. Several constants reach its ends only if each element can.
  if (is_one_number(y))
    out.grip = x.grip;
  else if (is_one_number(x))
    out.grip = y.grip;
  else if (std::max(x.grip, y.grip) == Grip::each && std::min(x.grip, y.grip) == Grip::reached)
    out.grip = Grip::reached;
  return out;
}

Interval add(const Call& c) {
  return corners(c.in("x"), c.in("y"), [](double a, double b) { return a + b; });
}
Interval sub(const Call& c) {
  return corners(c.in("x"), c.in("y"), [](double a, double b) { return a - b; });
}
Interval square_of(Interval x) {
  const double high = std::max(product(x.low, x.low), product(x.high, x.high));
  return {x.contains(0) ? 0 : std::min(x.low * x.low, x.high * x.high), high, at_most(x, Grip::reached).grip};
}
Interval mul(const Call& c) {
  if (c.op.input("x") == c.op.input("y")) return square_of(c.in("x"));
  return corners(c.in("x"), c.in("y"), product);
}
Interval real_div(const Call& c) {
  const Interval y = c.in("y");
  if (y.contains(0)) return {};
  return corners(c.in("x"), y, [](double a, double b) { return a / b; });
}
Interval maximum(const Call& c) {
  return corners(c.in("x"), c.in("y"), [](double a, double b) { return std::max(a, b); });
}
Interval minimum(const Call& c) {
  return corners(c.in("x"), c.in("y"), [](double a, double b) { return std::min(a, b); });
}
Interval square(const Call& c) { return square_of(c.in("x")); }
Interval pow(const Call& c) {
  const Interval x = c.in("x"), y = c.in("y");
  if (!is_one_number(y)) return {};
  if (y.low == 2) return square_of(x);
  if (x.low < 0 || y.low < 0) return {};
  return rising(x, [&](double v) { return std::pow(v, y.low); });
}
Interval abs(const Call& c) {
  const Interval x = c.in("x");
  return {x.contains(0) ? 0 : std::min(std::abs(x.low), std::abs(x.high)), x.magnitude(),
          at_most(x, Grip::reached).grip};
}
Interval exp(const Call& c) {
  return rising(c.in("x"), [](double v) { return std::exp(v); });
}
Interval exp2(const Call& c) {
  return rising(c.in("x"), [](double v) { return std::exp2(v); });
}
Interval log(const Call& c) {
  const double epsilon = c.number("epsilon", 0);
  return rising(c.in("x"), [&](double v) { return v + epsilon <= 0 ? -HUGE_VAL : std::log(v + epsilon); });
}
Interval sqrt(const Call& c) {
  return rising(c.in("x"), [](double v) { return std::sqrt(std::max(v, 0.0)); });
}
Interval rsqrt(const Call& c) {
  const double epsilon = c.number("epsilon", 0);
  const Interval x = c.in("x");
  const auto f = [&](double v) { return 1 / std::sqrt(std::max(v + epsilon, 0.0)); };
  return {f(x.high), f(x.low), x.grip};
}
Interval inverse(const Call& c) {
  const Interval x = shifted(c.in("x"), c.number("epsilon", 0));
  if (x.contains(0)) return {};
  return {1 / x.high, 1 / x.low, x.grip};
}
Interval clip(const Call& c) {
  const double low = c.number("alpha", -HUGE_VAL), high = c.number("beta", HUGE_VAL);
  return rising(c.in("x"), [&](double v) { return std::min(std::max(v, low), high); });
}
/// Integers wrap to narrower types, floats saturate.
Interval cast(const Call& c) {
  Interval x = c.in("x");
  const ir::DType to = c.result.type.dtype();
  const Interval type = numbers_of(to);
  if (!type.is_bounded() || (type.low <= x.low && x.high <= type.high)) return x;
  const ir::Value* from = c.op.input("x");
  if (to == ir::DType::boolean || from == nullptr || !ir::is_float(from->type.dtype())) return type;
  return rising(x, [&](double v) { return std::clamp(v, type.low, type.high); });
}
Interval whole(const Call& c) {
  const Interval x = c.in("x");
  return {std::floor(x.low), std::ceil(x.high), x.grip};
}
Interval one(const Call&) { return {-1, 1}; }
Interval yes_or_no(const Call&) { return {0, 1}; }
/// The remainder has the sign of the divisor.
Interval mod(const Call& c) {
  const Interval x = c.in("x"), y = c.in("y");
  if (x.low >= 0 && x.high < y.low) return at_most(x, Grip::wide);
  if (y.low > 0) return {0, y.high};
  return y.high < 0 ? Interval{y.low, 0} : Interval{-y.magnitude(), y.magnitude()};
}
Interval floor_div(const Call& c) {
  const Interval y = c.in("y");
  if (y.contains(0)) return {};
  return at_most(corners(c.in("x"), y, [](double a, double b) { return std::floor(a / b); }), Grip::wide);
}

}  // namespace

const Transfers& elementwise_transfers() {
  static const Transfers all{{"add", add},           {"sub", sub},         {"mul", mul},
                             {"real_div", real_div}, {"maximum", maximum}, {"minimum", minimum},
                             {"square", square},     {"pow", pow},         {"abs", abs},
                             {"exp", exp},           {"exp2", exp2},       {"log", log},
                             {"sqrt", sqrt},         {"rsqrt", rsqrt},     {"inverse", inverse},
                             {"clip", clip},         {"cast", cast},       {"floor", whole},
                             {"ceil", whole},        {"round", whole},     {"sign", one},
                             {"sin", one},           {"cos", one},         {"erf", one},
                             {"equal", yes_or_no},   {"mod", mod},         {"floor_div", floor_div}};
  return all;
}

}  // namespace moka::linting
