#include "plan/team.h"

#include <omp.h>
#include <sched.h>

#include <array>
#include <atomic>

namespace moka::plan {

namespace {

/// The processors on which a thread of the team runs.
class Taken {
 public:
  /// Whether nobody had it before.
  bool take(int processor) {
    auto& word = words_[static_cast<size_t>(processor) / 64];
    const uint64_t bit = uint64_t{1} << (processor % 64);
    return (word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

 private:
  std::array<std::atomic<uint64_t>, CPU_SETSIZE / 64> words_{};
};

void leave_what_is_taken(Taken& taken) {
  cpu_set_t allowed, one;
  const int now = sched_getcpu();
  if (now < 0 || now >= CPU_SETSIZE || taken.take(now)) return;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (!CPU_ISSET(i, &allowed) || !taken.take(i)) continue;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
    return;
  }
}

}  // namespace

void spread_team(int threads) {
  thread_local int spread = 1;
  if (threads <= spread || omp_in_parallel() != 0) return;
  spread = threads;
  Taken taken;
  if (const int own = sched_getcpu(); own >= 0 && own < CPU_SETSIZE) taken.take(own);
  std::atomic<int> done{0};
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() != 0) {
      leave_what_is_taken(taken);
      done.fetch_add(1, std::memory_order_release);
    } else {
      // A thread on this processor gets it only if it is given away.
      for (int i = 0; i < 1000 && done.load(std::memory_order_acquire) + 1 < omp_get_num_threads(); i++) sched_yield();
    }
  }
}

}  // namespace moka::plan
