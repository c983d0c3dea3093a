// SPDX-License-Identifier: Apache-2.0
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_logical_not() {
  return OpBuilder("logical_not", "Negation of booleans, elementwise.")
      .in("x", kBool)
      .infer(same_as())
      .reference([](const OpCall& call, std::span<const TensorView> out) -> Status {
        const TensorView& x = call.in("x");
        const uint8_t* a = x.as<uint8_t>();
        uint8_t* y = out[0].as<uint8_t>();
        for (int64_t i = 0; i < x.count(); i++) y[i] = a[i] == 0;
        return {};
      })
      .traits(Trait::elementwise)
      .build();
}

}  // namespace moka::ops
