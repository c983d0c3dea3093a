// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>

#include "base/error.h"

namespace moka {

/// Limits the memory that sizes in a model can make a load allocate. All parts of one load share it. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit = std::numeric_limits<size_t>::max()) : limit_(limit) {}

  /// Reserves `bytes` for `what`. Error out_of_budget names what, the bytes asked for and the limit.
  Status take(size_t bytes, std::string_view what);
  void give_back(size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  size_t limit() const { return limit_; }
  size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  size_t limit_;
  std::atomic<size_t> used_{0};
};

}  // namespace moka
