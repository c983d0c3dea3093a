// SPDX-License-Identifier: Apache-2.0
#include "runtime/admission.h"

#include <algorithm>

#include "base/processors.h"
#include "base/wait.h"
#include "runtime/sessions.h"

namespace moka::runtime {

Status Turns::take(const void* model, const Stop* stop) {
  std::unique_lock lock(mutex_);
  if (free_ > 0) {
    free_--;
    return {};
  }
  const trace::Span span(trace::Lane::activity, "wait for a turn");
  const trace::Counted waits(trace::Counter::queue);
  Waiting self;
  waiting_[model].push_back(&self);
  Status waited = wait(self.called, lock, stop, [&] { return self.is_called; });
  if (!waited.ok()) {
    auto all = waiting_.find(model);
    std::erase(all->second, &self);
    if (all->second.empty()) waiting_.erase(all);
  }
  return waited;
}

void Turns::give_back() {
  std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    free_++;
    return;
  }
  auto next = waiting_.upper_bound(last_);
  if (next == waiting_.end()) next = waiting_.begin();
  last_ = next->first;
  Waiting* called = next->second.front();
  next->second.pop_front();
  if (next->second.empty()) waiting_.erase(next);
  called->is_called = true;
  called->called.notify_one();
}

size_t Turns::count_waiting() const {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [model, all] : waiting_) count += all.size();
  return count;
}

Turns& Turns::of(const kernel::Device& device) {
  // Never destroyed: threads may predict while the process ends.
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::map<const kernel::Device*, Turns>;
  std::lock_guard lock(mutex);
  return all.try_emplace(&device, std::max(2, processors())).first->second;
}

DeviceSessions& DeviceSessions::shared() {
  static auto& all = *new DeviceSessions;
  return all;
}

void DeviceSessions::add(SessionPool& pool) {
  std::lock_guard lock(pools_mutex_);
  pools_.insert(&pool);
}

void DeviceSessions::remove(SessionPool& pool) {
  std::lock_guard lock(pools_mutex_);
  pools_.erase(&pool);
}

bool DeviceSessions::drop_idle() {
  std::lock_guard lock(pools_mutex_);
  bool any = false;
  for (SessionPool* pool : pools_) any |= pool->drop_idle();
  return any;
}

void DeviceSessions::started() {
  std::lock_guard lock(mutex_);
  running_++;
}

void DeviceSessions::ended() {
  {
    std::lock_guard lock(mutex_);
    running_--;
    ended_count_++;
  }
  changed_.notify_all();
}

uint64_t DeviceSessions::count_ended() const {
  std::lock_guard lock(mutex_);
  return ended_count_;
}

bool DeviceSessions::is_anyone_waiting() const {
  std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

Admission::~Admission() {
  if (!is_waiting_) return;
  {
    std::lock_guard lock(all_.mutex_);
    std::erase(all_.waiting_, this);
  }
  all_.changed_.notify_all();
}

Status Admission::wait_for_turn(const Stop* stop) {
  std::unique_lock lock(all_.mutex_);
  return wait(all_.changed_, lock, stop, [&] { return all_.waiting_.empty() || all_.waiting_.front() == this; });
}

Result<bool> Admission::wait_for_end(uint64_t seen, const Stop* stop) {
  std::unique_lock lock(all_.mutex_);
  if (!is_waiting_) all_.waiting_.push_back(this);
  is_waiting_ = true;
  MOKA_TRY(wait(all_.changed_, lock, stop, [&] { return all_.running_ == 0 || all_.ended_count_ != seen; }));
  return all_.ended_count_ != seen;
}

}  // namespace moka::runtime
