#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_tan() {
  return unary("tan", "Tangent, elementwise.", [](auto x) { return std::tan(x); }).build();
}

}  // namespace moka::ops
