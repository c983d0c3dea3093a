// SPDX-License-Identifier: Apache-2.0
// Input: a kernel cache. A cache that was read must be the same after writing and reading it again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/kernel_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const moka::runtime::KernelMachine machine{"processor", "build"};
  const std::vector<moka::plan::Measurement> added{{"shape", 1, "kernel", "kernel", {{"kernel", 1e-6}}}};
  auto before = moka::runtime::parse_kernel_cache(text, machine);
  const std::string merged = moka::runtime::merged_kernel_cache(text, machine, added);
  auto after = moka::runtime::parse_kernel_cache(merged, machine);
  if (!after.ok() || after->empty() || (before.ok() && after->size() > before->size() + 1)) std::abort();
  return 0;
}
