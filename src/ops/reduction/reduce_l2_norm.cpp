// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/gradients.h"
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct Length {
  double sum = 0;
  void add(double v) { sum += v * v; }
  double result(int64_t) const { return std::sqrt(sum); }
};

void reduce_l2_norm_gradient(Gradient& g) {
  const Term share = select(compare("equal", g.y(), 0.0), 0.0, g.dy() / g.y());
  g.set("x", reduced(g, share) * g.x());
}

}  // namespace

OpDef define_reduce_l2_norm() {
  return reduction<AsReal<Length>>("reduce_l2_norm",
                                   "Square root of the sum of squares over axes; integers round towards zero.")
      .note("Integers round towards zero.", "numpy.sqrt cast to the input's type")
      .gradient(reduce_l2_norm_gradient)
      .build();
}

}  // namespace moka::ops
