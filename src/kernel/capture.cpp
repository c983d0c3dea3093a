// SPDX-License-Identifier: Apache-2.0
#include "kernel/capture.h"

#include <algorithm>

#include "base/clock.h"

namespace moka::kernel {

TimestampFacts clock_facts() {
  constexpr size_t kGaps = 65;
  std::array<int64_t, kGaps> gaps;
  int64_t before = clock_nanoseconds();
  for (int64_t& gap : gaps) {
    const int64_t now = clock_nanoseconds();
    gap = now - before;
    before = now;
  }
  std::nth_element(gaps.begin(), gaps.begin() + kGaps / 2, gaps.end());
  return {false, 1e-9, 63, static_cast<double>(gaps[kGaps / 2]) * 1e-9, true};
}

}  // namespace moka::kernel
