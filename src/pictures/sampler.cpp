// SPDX-License-Identifier: Apache-2.0
#include "pictures/sampler.h"

#include "base/instruction_set.h"

namespace moka::pictures {

const Sampler& sampler() {
#if defined(__x86_64__)
  switch (instruction_set()) {
    case InstructionSet::avx512: return sampler_avx512();
    case InstructionSet::avx2: return sampler_avx2();
    case InstructionSet::base: break;
  }
#endif
  return sampler_base();
}

}  // namespace moka::pictures
