#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_acos() {
  return unary("acos", "Inverse cosine, elementwise; NaN outside [-1, 1].", [](auto x) { return std::acos(x); })
      .build();
}

}  // namespace moka::ops
