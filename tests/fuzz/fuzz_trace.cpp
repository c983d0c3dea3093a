// SPDX-License-Identifier: Apache-2.0
// Input: a trace of Perfetto's format.
#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/read.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  (void)moka::trace::read({reinterpret_cast<const std::byte*>(input), size});
  return 0;
}
