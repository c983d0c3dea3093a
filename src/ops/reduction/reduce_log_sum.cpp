// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/gradients.h"
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct LogSum {
  double sum = 0;
  void add(double v) { sum += v; }
  double result(int64_t) const { return std::log(sum); }
};

void reduce_log_sum_gradient(Gradient& g) { g.set("x", reduced(g, g.dy() * apply("exp", -g.y()))); }

}  // namespace

OpDef define_reduce_log_sum() {
  return reduction<AsReal<LogSum>>("reduce_log_sum",
                                   "Natural logarithm of the sum over axes; integers round towards zero.")
      .note("Negative sums give NaN, 0 gives -inf.", "numpy.log")
      .gradient(reduce_log_sum_gradient)
      .build();
}

}  // namespace moka::ops
