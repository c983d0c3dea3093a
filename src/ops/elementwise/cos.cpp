#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_cos() {
  return unary("cos", "Cosine, elementwise.", [](auto x) { return std::cos(x); }).build();
}

}  // namespace moka::ops
