#include <algorithm>

#include "plan/plan.h"

namespace moka::plan {

std::shared_ptr<const Plan> PlanCache::find(const Key& key) {
  for (auto it = plans_.begin(); it != plans_.end(); ++it)
    if (it->first == key) {
      plans_.splice(plans_.begin(), plans_, it);
      return plans_.front().second;
    }
  return nullptr;
}

void PlanCache::add(const Key& key, std::shared_ptr<const Plan> plan, size_t capacity) {
  plans_.emplace_front(key, std::move(plan));
  while (plans_.size() > std::max<size_t>(capacity, 1)) plans_.pop_back();
}

std::vector<std::shared_ptr<const Plan>> PlanCache::snapshot() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Plan>> out;
  for (const auto& [key, plan] : plans_) out.push_back(plan);
  return out;
}

}  // namespace moka::plan
