// SPDX-License-Identifier: Apache-2.0
#include "ops/common/binary.h"
#include "ops/common/gradients.h"

namespace moka::ops {

namespace {

void minimum_gradient(Gradient& g) { pick_gradient(g, "less"); }

}  // namespace

OpDef define_minimum() {
  return binary(
             "minimum", "The smaller of x and y with broadcasting; NaN if either is.",
             [](auto a, auto b) { return a <= b || a != a ? a : b; },
             [](int64_t a, int64_t b) { return a < b ? a : b; }, Trait::commutative)
      .note("NaN if either is NaN.", "coremltools' value inference, numpy.minimum")
      .gradient(minimum_gradient)
      .build();
}

}  // namespace moka::ops
