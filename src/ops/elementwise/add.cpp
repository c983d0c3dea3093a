#include "ops/common/binary.h"

namespace moka::ops {

OpDef define_add() {
  return binary(
             "add", "x + y with broadcasting; integers wrap.", [](auto a, auto b) { return a + b; },
             [](int64_t a, int64_t b) {
               return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
             },
             Trait::commutative)
      .build();
}

}  // namespace moka::ops
