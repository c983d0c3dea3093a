// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "kernel/parallel.h"

/// The thread pool of the process. A worker that finishes a job spins for about a tenth of a millisecond, then sleeps
/// until a caller takes it. A forked child starts its own pool.
///
///   PoolWorkers workers(4);                                        // up to 3, besides the calling thread
///   const auto help = [&](int number) { compute_part(number); };   // 1 to workers.threads() - 1
///   const FunctionRef<void(int)> f(help);
///   workers.start(f);
///   compute_part(0);                                               // the destructor waits for the others
///
/// Most code wants parallel_for() of parallel.h, which is built on this.
namespace moka::kernel {

class Worker;

/// Workers that the calling thread takes from the pool and returns in the destructor. All callers and their workers
/// together never exceed the number of processors, unless a single caller asks for more threads.
class PoolWorkers {
 public:
  /// Takes up to threads - 1 workers.
  explicit PoolWorkers(int threads);
  PoolWorkers(const PoolWorkers&) = delete;
  PoolWorkers& operator=(const PoolWorkers&) = delete;
  /// Waits for workers that have begun. The others will not begin.
  ~PoolWorkers();

  /// Number of threads including the calling thread, which has number 0.
  int threads() const { return count_ + 1; }
  /// Each worker calls f(number) once. `f` must outlive this object.
  void start(const FunctionRef<void(int)>& f);

 private:
  std::array<Worker*, kMostThreads> workers_;
  int count_ = 0;
  bool started_ = false;
};

/// Sets the processors for workers of the calling thread from now on; empty: the processors that the thread itself may
/// use. Workers avoid the calling thread's processor when there are enough others.
void place_workers(std::span<const int> processors);
/// Whether callers and their workers outnumber the processors.
bool oversubscribed();

/// Returns the new value once `value` differs from `old`. The thread that changes it must call notify_one() or
/// notify_all().
int32_t wait_for_change(const std::atomic<int32_t>& value, int32_t old);

}  // namespace moka::kernel
