#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_softsign() {
  return unary("softsign", "x / (1 + |x|), elementwise.", [](auto x) { return x / (decltype(x)(1) + std::fabs(x)); })
      .build();
}

}  // namespace moka::ops
