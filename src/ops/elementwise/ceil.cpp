#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_ceil() {
  return unary("ceil", "Rounds up to an integer, elementwise.", [](auto x) { return std::ceil(x); }).build();
}

}  // namespace moka::ops
