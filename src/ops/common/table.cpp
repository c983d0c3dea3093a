// SPDX-License-Identifier: Apache-2.0
#include "ir/op_def.h"

namespace moka::ops {

const ir::OpTable& table() {
  static const ir::OpTable t(all());
  return t;
}

}  // namespace moka::ops
