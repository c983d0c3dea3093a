#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_erf() {
  return unary("erf", "Gauss error function, elementwise.", [](auto x) { return std::erf(x); }).build();
}

}  // namespace moka::ops
