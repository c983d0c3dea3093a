#include <limits>

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

}  // namespace

OpDef define_reduce_min() {
  return reduction<Smallest>("reduce_min", "Smallest element over axes; NaN if there is one.", true)
      .note("NaN if there is one.", "numpy.min, torch.amin")
      .build();
}

}  // namespace moka::ops
