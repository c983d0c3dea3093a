#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_sin() {
  return unary("sin", "Sine, elementwise.", [](auto x) { return std::sin(x); }).build();
}

}  // namespace moka::ops
