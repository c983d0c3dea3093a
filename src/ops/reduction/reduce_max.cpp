// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/common/gradients.h"
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct Largest {
  struct Real {
    double best = -std::numeric_limits<double>::infinity();
    void add(double v) { best = v > best || v != v ? v : best; }
    double result(int64_t) const { return best; }
  };
  struct Whole {
    int64_t best = std::numeric_limits<int64_t>::min();
    void add(int64_t v) { best = v > best ? v : best; }
    int64_t result(int64_t) const { return best; }
  };
};

void reduce_max_gradient(Gradient& g) { extremum_gradient(g); }

}  // namespace

OpDef define_reduce_max() {
  return reduction<Largest>("reduce_max", "Largest element over axes; NaN if there is one.", true)
      .note("NaN if there is one.", "numpy.max, torch.amax")
      .gradient(reduce_max_gradient)
      .build();
}

}  // namespace moka::ops
