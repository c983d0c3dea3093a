// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduction.h"

namespace moka::ops {

OpDef define_reduce_argmin() {
  return reduce_arg("reduce_argmin", "Index of the first smallest element along an axis.",
                    [](auto a, auto b) { return b < a; })
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
