#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "kernel/parallel.h"

/// The thread pool of the process. Its workers wait for a caller that takes them, spin for about a tenth of a
/// millisecond after it, and then sleep. A forked child starts a pool of its own.
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

/// Workers that the calling thread takes from the pool and gives back when this ends. All callers and their workers
/// together are never more threads than there are processors, unless a single caller asks for more.
class PoolWorkers {
 public:
  /// Takes up to threads - 1 workers.
  explicit PoolWorkers(int threads);
  PoolWorkers(const PoolWorkers&) = delete;
  PoolWorkers& operator=(const PoolWorkers&) = delete;
  /// Waits for the workers that have begun. The others no longer begin.
  ~PoolWorkers();

  /// Counts the calling thread, whose number is 0.
  int threads() const { return count_ + 1; }
  /// Each worker calls f(number) once. `f` must outlive this object.
  void start(const FunctionRef<void(int)>& f);

 private:
  std::array<Worker*, kMostThreads> workers_;
  int count_ = 0;
  bool started_ = false;
};

/// Sets the processors on which workers of the calling thread run from now on; empty: those the thread itself may use.
/// Workers leave out the processor that the calling thread is on, if there are enough others.
void place_workers(std::span<const int> processors);
/// Whether callers and their workers are more threads than there are processors.
bool oversubscribed();

/// Returns the new value once `value` is no longer `old`. Whoever changes it must call notify_one() or notify_all().
int32_t wait_for_change(const std::atomic<int32_t>& value, int32_t old);

}  // namespace moka::kernel
