#include "ops/common/binary.h"

namespace moka::ops {

OpDef define_maximum() {
  return binary(
             "maximum", "The larger of x and y with broadcasting; NaN if either is.",
             [](auto a, auto b) { return a >= b || a != a ? a : b; },
             [](int64_t a, int64_t b) { return a > b ? a : b; }, Trait::commutative)
      .note("NaN if either is NaN.", "coremltools' value inference, numpy.maximum")
      .build();
}

}  // namespace moka::ops
