// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradients.h"
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

void reduce_prod_gradient(Gradient& g) {
  const Ints axes = g.take(reduced_axes(g.known(), g.x().rank()));
  g.set("x", reduced(g, g.dy()) * product_of_others(g.x(), [&](Term t, bool is_product) {
               if (is_product) return reduced(g, g.again(t));
               return g.sum(t, axes, true);
             }));
}

}  // namespace

OpDef define_reduce_prod() {
  return reduction<Product>("reduce_prod", "Product over axes; integers wrap.").gradient(reduce_prod_gradient).build();
}

}  // namespace moka::ops
