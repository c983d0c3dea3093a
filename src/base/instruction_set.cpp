// SPDX-License-Identifier: Apache-2.0
#include "base/instruction_set.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/half.h"

namespace moka {

namespace {

InstructionSet detected_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && converts_halves()) return InstructionSet::avx2;
#endif
  return InstructionSet::base;
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = [] {
    const InstructionSet best = detected_set();
    const char* limit = std::getenv("MOKA_MAX_CPU_ISA");
    if (limit == nullptr) return best;
    const std::string_view text = limit;
    return std::min(best, text == "base"   ? InstructionSet::base
                          : text == "avx2" ? InstructionSet::avx2
                                           : InstructionSet::avx512);
  }();
  return chosen;
}

bool is_instruction_set_limited() { return instruction_set() < detected_set(); }

}  // namespace moka
