// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduction.h"

namespace moka::ops {

OpDef define_reduce_argmax() {
  return reduce_arg("reduce_argmax", "Index of the first largest element along an axis.",
                    [](auto a, auto b) { return b > a; })
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
