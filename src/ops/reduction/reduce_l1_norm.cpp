// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/gradients.h"
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct SumOfMagnitudes {
  struct Real {
    double sum = 0;
    void add(double v) { sum += std::fabs(v); }
    double result(int64_t) const { return sum; }
  };
  struct Whole {
    uint64_t sum = 0;
    void add(int64_t v) { sum += v < 0 ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v); }
    int64_t result(int64_t) const { return static_cast<int64_t>(sum); }
  };
};

void reduce_l1_norm_gradient(Gradient& g) { g.set("x", reduced(g, g.dy()) * apply("sign", g.x())); }

}  // namespace

OpDef define_reduce_l1_norm() {
  return reduction<SumOfMagnitudes>("reduce_l1_norm", "Sum of absolute values over axes; integers wrap.")
      .gradient(reduce_l1_norm_gradient)
      .build();
}

}  // namespace moka::ops
