// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradients.h"
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct Mean {
  double sum = 0;
  void add(double v) { sum += v; }
  double result(int64_t n) const { return sum / static_cast<double>(n); }
};

/// The quotient, because 1 / n is rounded and gradients may cancel.
void reduce_mean_gradient(Gradient& g) {
  const int64_t results = g.y().shape().count(), n = results > 0 ? g.x().shape().count() / results : 1;
  g.set("x", reduced(g, g.dy() / static_cast<double>(n)));
}

}  // namespace

OpDef define_reduce_mean() {
  return reduction<AsReal<Mean>>("reduce_mean", "Mean over axes; integers round towards zero.")
      .note("Integers round towards zero.", "numpy.mean cast to the input's type")
      .gradient(reduce_mean_gradient)
      .build();
}

}  // namespace moka::ops
