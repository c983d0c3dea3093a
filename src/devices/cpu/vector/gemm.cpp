// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/gemm.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Gemm& gemm() {
  static const Gemm& g = MOKA_FOR_ISA(gemm)(false);
  return g;
}

const Gemm& gemm_for(int64_t columns) {
  static const Gemm& wide = MOKA_FOR_ISA(gemm)(true);
  // A single vector after panels of three is slow, unless there are many panels.
  const int64_t vectors = (columns + wide.lanes - 1) / wide.lanes;
  return vectors % 3 == 1 && vectors < 16 ? gemm() : wide;
}

int64_t packed_count(const Gemm& g, int64_t depth, int64_t columns) {
  return (columns + g.lanes - 1) / g.lanes * g.lanes * depth;
}

}  // namespace moka::devices::cpu::vector
