// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "linting/bounds.h"

namespace moka::linting {
namespace {

Interval interval_of_x(const Call& c) { return c.in("x"); }
/// For operations that drop elements, perhaps those at the ends.
Interval part(const Call& c) {
  const Interval x = c.in("x");
  return at_most(x, x.grip == Grip::each ? Grip::each : Grip::wide);
}
/// For operations that copy an element to several places, so the elements of the result depend on each other.
Interval repeated(const Call& c) { return at_most(c.in("x"), Grip::reached); }
Interval mixed(const Call& c) { return at_most(c.in("x"), Grip::wide); }
Interval all_values(const Call& c) {
  Interval out{HUGE_VAL, -HUGE_VAL, Grip::each};
  for (const ir::Value* value : c.op.inputs("values")) out = hull(out, c.bounds.of(value));
  return out;
}
Interval fill(const Call& c) { return c.op.input("value") == nullptr ? Interval{0, 0} : c.in("value"); }
Interval slice_update(const Call& c) { return at_most(hull(c.in("x"), c.in("update")), Grip::wide); }
Interval pad(const Call& c) {
  const double value = c.number("constant_val", 0);
  const Interval x = at_most(c.in("x"), Grip::reached);
  return hull(x, {value, value, Grip::each});
}

}  // namespace

const Transfers& movement_transfers() {
  static const Transfers all{{"identity", interval_of_x},
                             {"reshape", interval_of_x},
                             {"transpose", interval_of_x},
                             {"expand_dims", interval_of_x},
                             {"squeeze", interval_of_x},
                             {"flatten2d", interval_of_x},
                             {"reverse", interval_of_x},
                             {"depth_to_space", interval_of_x},
                             {"space_to_depth", interval_of_x},
                             {"pixel_shuffle", interval_of_x},
                             {"pixel_unshuffle", interval_of_x},
                             {"slice_by_index", part},
                             {"slice_by_size", part},
                             {"split", part},
                             {"gather", part},
                             {"gather_along_axis", part},
                             {"gather_nd", part},
                             {"fill", fill},
                             {"fill_like", fill},
                             {"slice_update", slice_update},
                             {"tile", repeated},
                             {"upsample_nearest_neighbor", repeated},
                             {"resize_nearest_neighbor", repeated},
                             {"upsample_bilinear", mixed},
                             {"resize_bilinear", mixed},
                             {"concat", all_values},
                             {"stack", all_values},
                             {"pad", pad}};
  return all;
}

}  // namespace moka::linting
