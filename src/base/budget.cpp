// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

namespace moka {

Status MemoryBudget::take(size_t bytes, std::string_view what) {
  size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes)
      return fail(ErrorCode::out_of_budget, what, " needs ", bytes, " bytes; ", limit_ - used,
                  " of the memory budget of ", limit_, " are left");
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return {};
}

}  // namespace moka
