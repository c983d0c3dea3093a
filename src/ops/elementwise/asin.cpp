#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_asin() {
  return unary("asin", "Inverse sine, elementwise; NaN outside [-1, 1].", [](auto x) { return std::asin(x); }).build();
}

}  // namespace moka::ops
