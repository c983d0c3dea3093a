#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_softsign() {
  return unary("softsign", "x / (1 + |x|), elementwise.", [](auto x) { return x / (decltype(x)(1) + std::fabs(x)); })
      .note("Infinities give NaN.", "the formula in IEEE arithmetic, as torch.nn.functional.softsign")
      .build();
}

}  // namespace moka::ops
