// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "linting/bounds.h"

/// Operations that make indices or sizes.
namespace moka::linting {
namespace {

/// Indices along an axis.
Interval along(const Call& c, int64_t axis) { return {0, std::max(c.size("x", axis) - 1, 0.0)}; }
Interval index(const Call& c) { return along(c, static_cast<int64_t>(c.number("axis", -1))); }
Interval topk(const Call& c) { return &c.result == c.op.output(0) ? at_most(c.in("x"), Grip::wide) : index(c); }
/// Over the sizes of x, or over the indices of its elements.
Interval sizes(const Call& c, double less) {
  const ir::Type& type = c.op.input("x")->type;
  if (!type.is_tensor() || !type.is_ranked()) return {0, HUGE_VAL};
  Interval out{0, 0};
  for (int i = 0; i < type.rank(); ++i) out.high = std::max(out.high, c.size("x", i) - less);
  return out;
}
Interval shape(const Call& c) { return sizes(c, 0); }
Interval places(const Call& c) { return sizes(c, 1); }
Interval range_1d(const Call& c) {
  const Interval start = c.in("start"), end = c.in("end");
  return {std::min(start.low, end.low), std::max(start.high, end.high)};
}
Interval one_hot(const Call& c) {
  const Interval on = c.op.input("on_value") == nullptr ? Interval{1, 1} : c.in("on_value");
  return hull(on, c.op.input("off_value") == nullptr ? Interval{0, 0} : c.in("off_value"));
}
}  // namespace

const Transfers& index_transfers() {
  static const Transfers all{{"topk", topk},   {"argsort", index},   {"reduce_argmax", index}, {"reduce_argmin", index},
                             {"shape", shape}, {"non_zero", places}, {"range_1d", range_1d},   {"one_hot", one_hot}};
  return all;
}

}  // namespace moka::linting
