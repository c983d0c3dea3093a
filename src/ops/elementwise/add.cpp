// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/binary.h"

namespace moka::ops {

namespace {

void add_gradient(Gradient& g) {
  g.set("x", g.dy());
  g.set("y", g.dy());
}

}  // namespace

OpDef define_add() {
  return binary(
             "add", "x + y with broadcasting; integers wrap.", [](auto a, auto b) { return a + b; },
             [](int64_t a, int64_t b) {
               return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
             },
             Trait::commutative)
      .gradient(add_gradient)
      .build();
}

}  // namespace moka::ops
