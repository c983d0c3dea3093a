#include <algorithm>

#include "linting/bounds.h"

namespace moka::linting {
namespace {

Interval same(const Call& c) { return c.in("x"); }
/// Perhaps not the elements that are at the ends.
Interval part(const Call& c) {
  const Interval x = c.in("x");
  return at_most(x, x.grip == Grip::each ? Grip::each : Grip::wide);
}
/// An element may be in several places.
Interval repeated(const Call& c) { return at_most(c.in("x"), Grip::reached); }
Interval mixed(const Call& c) { return at_most(c.in("x"), Grip::wide); }
Interval all_values(const Call& c) {
  Interval out{HUGE_VAL, -HUGE_VAL, Grip::each};
  for (const ir::Value* value : c.op.inputs("values")) out = hull(out, c.bounds.of(value));
  return out;
}
Interval pad(const Call& c) {
  const double value = c.number("constant_val", 0);
  const Interval x = at_most(c.in("x"), Grip::reached);
  return hull(x, {value, value, Grip::each});
}

}  // namespace

const Transfers& movement_transfers() {
  static const Transfers all{{"identity", same},
                             {"reshape", same},
                             {"transpose", same},
                             {"expand_dims", same},
                             {"squeeze", same},
                             {"flatten2d", same},
                             {"reverse", same},
                             {"depth_to_space", same},
                             {"space_to_depth", same},
                             {"pixel_shuffle", same},
                             {"pixel_unshuffle", same},
                             {"slice_by_index", part},
                             {"slice_by_size", part},
                             {"split", part},
                             {"gather", part},
                             {"gather_along_axis", part},
                             {"topk", mixed},
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
