#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_square() {
  return unary_with_int(
             "square", "x times x, elementwise; integers wrap.", [](auto x) { return x * x; },
             [](int64_t x) { return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x)); })
      .build();
}

}  // namespace moka::ops
