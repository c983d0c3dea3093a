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

}  // namespace

OpDef define_reduce_sum() { return reduction<Sum>("reduce_sum", "Sum over axes; integers wrap.").build(); }

}  // namespace moka::ops
