// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "devices/cpu/isa.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu::vector {

struct LoopsSet {
  const char* name;
  const Loops* loops;
};

/// The loops of every instruction set that this processor has.
inline std::vector<LoopsSet> loops_sets() {
  std::vector<LoopsSet> all{{"base", &loops_base()}};
#if defined(__x86_64__)
  if (isa() >= Isa::avx2) all.push_back({"avx2", &loops_avx2()});
  if (isa() >= Isa::avx512) all.push_back({"avx512", &loops_avx512()});
#endif
  return all;
}

}  // namespace moka::devices::cpu::vector
