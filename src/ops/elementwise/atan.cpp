#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_atan() {
  return unary("atan", "Inverse tangent, elementwise.", [](auto x) { return std::atan(x); }).build();
}

}  // namespace moka::ops
