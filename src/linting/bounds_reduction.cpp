// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "linting/bounds.h"

namespace moka::linting {
namespace {

/// How many elements become one; 0 when unknown.
double reduced(const Call& c) {
  const ir::Type& type = c.op.output()->type;
  const int64_t before = c.elements("x");
  if (before == 0 || !type.is_tensor() || !type.is_ranked() || !type.is_concrete()) return 0;
  const int64_t after = std::max<int64_t>(type.shape().count(), 1);
  return static_cast<double>(before) / static_cast<double>(after);
}

Interval sum_of(Interval x, double n) { return n == 0 ? Interval{} : Interval{x.low * n, x.high * n, Grip::wide}; }
/// `of`, whose ends the result reaches if every element of `x` can be at the same end at once.
Interval reachable(Interval of, Interval x) {
  of.grip = x.grip == Grip::each ? Grip::reached : Grip::wide;
  return of;
}

Interval reduce_sum(const Call& c) { return reachable(sum_of(c.in("x"), reduced(c)), c.in("x")); }
Interval inside(const Call& c) { return reachable(c.in("x"), c.in("x")); }
Interval reduce_sum_square(const Call& c) {
  const Interval x = c.in("x");
  const double most = x.magnitude() * x.magnitude() * reduced(c);
  return reachable({0, reduced(c) == 0 ? HUGE_VAL : most}, x);
}
Interval reduce_l2_norm(const Call& c) {
  const Interval square = reduce_sum_square(c);
  return {0, std::sqrt(square.high), square.grip};
}
Interval reduce_log_sum_exp(const Call& c) {
  const double n = reduced(c);
  return n == 0 ? Interval{} : reachable(shifted(c.in("x"), std::log(n)), c.in("x"));
}
Interval pooled(const Call& c) {
  const Interval x = c.in("x");
  return {std::min(x.low, 0.0), std::max(x.high, 0.0)};
}

/// x - mean over the deviation is at most the root of the number of elements.
Interval normalized(const Call& c) {
  const double n = static_cast<double>(c.elements("x"));
  if (n == 0) return {};
  const Interval gamma = c.op.input("gamma") == nullptr ? Interval{1, 1} : c.in("gamma");
  const Interval beta = c.op.input("beta") == nullptr ? Interval{0, 0} : c.in("beta");
  const double most = std::sqrt(n) * gamma.magnitude() + beta.magnitude();
  return {-most, most};
}

}  // namespace

const Transfers& reduction_transfers() {
  static const Transfers all{{"reduce_sum", reduce_sum},
                             {"reduce_mean", inside},
                             {"reduce_max", inside},
                             {"reduce_min", inside},
                             {"reduce_sum_square", reduce_sum_square},
                             {"reduce_l2_norm", reduce_l2_norm},
                             {"reduce_log_sum_exp", reduce_log_sum_exp},
                             {"max_pool", inside},
                             {"avg_pool", pooled},
                             {"layer_norm", normalized},
                             {"instance_norm", normalized}};
  return all;
}

}  // namespace moka::linting
