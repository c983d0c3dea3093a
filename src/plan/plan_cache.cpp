// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/plan.h"

namespace moka::plan {

std::shared_ptr<const Plan> PlanCache::find(const Key& key, std::shared_ptr<Making>& making) {
  std::lock_guard lock(mutex_);
  for (auto it = plans_.begin(); it != plans_.end(); ++it)
    if (it->first == key) {
      plans_.splice(plans_.begin(), plans_, it);
      return it->second;
    }
  auto there = std::find_if(makings_.begin(), makings_.end(), [&](const auto& m) { return m.first == key; });
  if (there == makings_.end()) there = makings_.insert(makings_.end(), {key, std::make_shared<Making>()});
  making = there->second;
  return nullptr;
}

PlanCache::~PlanCache() {
  while (!plans_.empty()) forget_last();
}

void PlanCache::forget_last() {
  if (kept_ != nullptr) kept_->bytes -= plans_.back().second->bytes();
  plans_.pop_back();
}

void PlanCache::finish(const Key& key, const std::shared_ptr<Making>& making, const PlanOptions& options) {
  std::lock_guard lock(mutex_);
  if (making->plan != nullptr) {
    kept_ = options.kept;
    plans_.emplace_front(key, making->plan);
    if (kept_ != nullptr) kept_->bytes += making->plan->bytes();
    const size_t capacity = std::max<size_t>(options.cached_shapes, 1);
    while (plans_.size() > capacity || (plans_.size() > 1 && kept_ != nullptr && kept_->bytes > kept_->limit))
      forget_last();
  }
  makings_.remove_if([&](const auto& m) { return m.second == making; });
}

std::vector<std::shared_ptr<const Plan>> PlanCache::snapshot() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Plan>> out;
  for (const auto& [key, plan] : plans_) out.push_back(plan);
  return out;
}

}  // namespace moka::plan
