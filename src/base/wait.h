// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/stop.h"

namespace moka {

/// Waits until `is_met`, which is asked with the lock held. A stop is seen within a millisecond or two. Errors: those
/// of the stop.
template <class Condition>
Status wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, const Stop* stop, Condition is_met) {
  if (stop == nullptr) {
    changed.wait(lock, is_met);
    return {};
  }
  while (!is_met()) {
    MOKA_TRY(stop->check());
    changed.wait_for(lock, std::chrono::milliseconds(1));
  }
  return {};
}

}  // namespace moka
