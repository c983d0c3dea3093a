// SPDX-License-Identifier: Apache-2.0
#include "base/watch.h"

namespace moka {

namespace {
constexpr auto kPause = std::chrono::milliseconds(10);
thread_local const Watch* watch_of_thread = nullptr;
}  // namespace

const Watch* Watch::current() { return watch_of_thread; }

Status Watch::at(std::string_view stage, size_t done, size_t total) {
  const Watch* const watch = watch_of_thread;
  if (watch == nullptr) return {};
  MOKA_TRY(watch->stop_.check());
  if (watch->progress_) watch->report(stage, done, total);
  return {};
}

void Watch::report(std::string_view stage, size_t done, size_t total) const {
  const auto now = Stop::Clock::now();
  if (stage == stage_ && done < total && now < next_) return;
  stage_ = stage;
  next_ = now + kPause;
  progress_(stage, done, total);
}

Watch::Scope::Scope(const Watch* watch) : before_(watch_of_thread) {
  if (watch != nullptr) watch_of_thread = watch;
}

Watch::Scope::~Scope() { watch_of_thread = before_; }

}  // namespace moka
