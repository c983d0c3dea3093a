// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradients.h"
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct Sum {
  struct Real {
    double sum = 0;
    void add(double v) { sum += v; }
    double result(int64_t) const { return sum; }
  };
  struct Whole {
    uint64_t sum = 0;
    void add(int64_t v) { sum += static_cast<uint64_t>(v); }
    int64_t result(int64_t) const { return static_cast<int64_t>(sum); }
  };
};

void reduce_sum_gradient(Gradient& g) { g.set("x", reduced(g, g.dy())); }

}  // namespace

OpDef define_reduce_sum() {
  return reduction<Sum>("reduce_sum", "Sum over axes; integers wrap.").gradient(reduce_sum_gradient).build();
}

}  // namespace moka::ops
