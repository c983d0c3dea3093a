// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/common/gradients.h"
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct Smallest {
  struct Real {
    double best = std::numeric_limits<double>::infinity();
    void add(double v) { best = v < best || v != v ? v : best; }
    double result(int64_t) const { return best; }
  };
  struct Whole {
    int64_t best = std::numeric_limits<int64_t>::max();
    void add(int64_t v) { best = v < best ? v : best; }
    int64_t result(int64_t) const { return best; }
  };
};

void reduce_min_gradient(Gradient& g) { extremum_gradient(g); }

}  // namespace

OpDef define_reduce_min() {
  return reduction<Smallest>("reduce_min", "Smallest element over axes; NaN if there is one.", true)
      .note("NaN if there is one.", "numpy.min, torch.amin")
      .gradient(reduce_min_gradient)
      .build();
}

}  // namespace moka::ops
