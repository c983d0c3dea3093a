// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/stop.h"

namespace moka::runtime {

/// Work that threads of the library run, in the order in which it came. Work that shares a key, such as a state, runs
/// one after another. Thread-safe; a forked child begins with an empty queue.
class AsyncQueue {
 public:
  /// The queue of the process. When the process ends, it drops work that has not begun, and waits for the rest.
  static AsyncQueue& shared();

  struct Work {
    /// Called once: with success, to do the work, or with why it is not done (those of `stop`; cancelled at the end of
    /// the process). Does not throw.
    std::function<void(Status)> run;
    Stop stop;                  ///< ends the waiting
    const void* key = nullptr;  ///< null: alone
  };
  void push(Work work);

  struct Impl;
  explicit AsyncQueue(std::unique_ptr<Impl> impl);
  ~AsyncQueue();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace moka::runtime
