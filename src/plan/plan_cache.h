// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ir/type.h"
#include "plan/options.h"

namespace moka::plan {

struct Plan;

/// Keeps a few plans of one block, each for concrete types. Drops the least recently used first. Thread-safe: plans are
/// made outside the lock, so callers with a known plan never wait, and callers that need the same new plan wait for the
/// one that makes it.
class PlanCache {
 public:
  using Key = std::vector<ir::Type>;
  PlanCache() = default;
  PlanCache(const PlanCache&) = delete;
  ~PlanCache();
  /// The plan for `key`; calls `make()` when there is none. A hit allocates nothing.
  template <class Make>
  Result<std::shared_ptr<const Plan>> get(const Key& key, const PlanOptions& options, Make&& make) {
    std::shared_ptr<Making> making;
    if (auto found = find(key, making)) return found;
    std::lock_guard lock(making->mutex);
    if (making->plan != nullptr) return making->plan;
    Result<std::shared_ptr<const Plan>> made = make();
    if (made.ok()) making->plan = *made;
    finish(key, making, options);
    return made;
  }
  std::vector<std::shared_ptr<const Plan>> snapshot() const;

 private:
  /// A plan that one caller makes while others wait for it.
  struct Making {
    std::mutex mutex;
    std::shared_ptr<const Plan> plan;  ///< null: not finished, or it failed
  };
  /// Returns the cached plan. Null: not in the cache; `making` is set to the entry where it is to be made.
  std::shared_ptr<const Plan> find(const Key& key, std::shared_ptr<Making>& making);
  void finish(const Key& key, const std::shared_ptr<Making>& making, const PlanOptions& options);
  void forget_last();
  mutable std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const Plan>>> plans_;
  std::list<std::pair<Key, std::shared_ptr<Making>>> makings_;
  std::shared_ptr<KeptPlans> kept_;
};

}  // namespace moka::plan
