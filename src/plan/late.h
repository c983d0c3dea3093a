// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "plan/prepare.h"

namespace moka::plan {

/// Kernels that run before their weights are packed (KernelChoice::unpacked). The first run of a plan leaves
/// them alone, so that the first answer does not wait. Later runs prepare some each. Thread-safe.
class LatePreparation {
 public:
  /// The operations and constants of `all` must outlive it.
  LatePreparation(std::vector<Preparation> all, const PlanOptions& options);

  /// Moves kernels with large weights in a mapped file out of `all`, and prepares those whose weights another plan has
  /// packed. nullptr: none is left for later.
  static std::shared_ptr<LatePreparation> take(std::vector<Preparation>& all, const PlanOptions& options);

  bool is_done() const { return is_done_.load(std::memory_order_relaxed); }
  /// Prepares a quarter of the weights, but stops after half the time of the last run. Begins at least one kernel for
  /// each thread. Does nothing before the first run has ended, or while another thread prepares. A kernel that fails,
  /// as memory is short, stays unprepared.
  void before_run();
  /// Prepares all kernels.
  void finish();
  void after_run(double seconds) { run_seconds_.store(seconds, std::memory_order_relaxed); }

 private:
  /// Prepares kernels until it has begun `bytes` of weights or `seconds` have passed, at least one for each thread. The
  /// caller holds the mutex.
  void prepare(size_t bytes, double seconds);

  std::vector<Preparation> all_;
  const PlanOptions options_;
  size_t bytes_ = 0;  ///< of the weights of all kernels
  std::mutex mutex_;
  std::atomic<size_t> next_{0};  ///< the first of `all_` that is not begun
  std::atomic<bool> is_done_{false};
  std::atomic<double> run_seconds_{0};  ///< of a run that has ended; 0: none has
};

}  // namespace moka::plan
