// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/common/gradients.h"
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct LogSumExp {
  double top = -std::numeric_limits<double>::infinity();
  double sum = 0;  ///< sum of e^(v - top)
  void add(double v) {
    if (std::isinf(v)) {
      if (v > 0) top = v;
    } else if (v > top) {
      sum = sum * std::exp(top - v) + 1;
      top = v;
    } else if (top != std::numeric_limits<double>::infinity() || v != v) {
      sum += std::exp(v - top);
    }
  }
  double result(int64_t) const { return std::isinf(top) && sum == sum ? top : top + std::log(sum); }
};

void reduce_log_sum_exp_gradient(Gradient& g) {
  g.set("x", reduced(g, g.dy()) * apply("exp", g.x() - reduced(g, g.y())));
}

}  // namespace

OpDef define_reduce_log_sum_exp() {
  return reduction<AsReal<LogSumExp>>(
             "reduce_log_sum_exp",
             "Natural logarithm of the sum of e^x over axes, without overflow; integers round towards zero.")
      .note("The largest element is subtracted first. +inf gives +inf, only -inf gives -inf, NaN gives NaN.",
            "scipy.special.logsumexp; coremltools issue 2690")
      .gradient(reduce_log_sum_exp_gradient)
      .build();
}

}  // namespace moka::ops
