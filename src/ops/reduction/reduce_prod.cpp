#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

struct Product {
  struct Real {
    double product = 1;
    void add(double v) { product *= v; }
    double result(int64_t) const { return product; }
  };
  struct Whole {
    uint64_t product = 1;
    void add(int64_t v) { product *= static_cast<uint64_t>(v); }
    int64_t result(int64_t) const { return static_cast<int64_t>(product); }
  };
};

}  // namespace

OpDef define_reduce_prod() { return reduction<Product>("reduce_prod", "Product over axes; integers wrap.").build(); }

}  // namespace moka::ops
