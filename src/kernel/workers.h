#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "kernel/team.h"

/// Threads that wait for work. They belong to the process and are lent to one leader at a time; they sleep when nobody
/// has wanted them for a tenth of a millisecond or so. A forked child makes its own.
namespace moka::kernel {

class Worker;

/// Threads that help the calling one, its leader. Together with those of other crews there are not more than
/// processors, unless one crew alone asks for more: then the others have nobody.
class Crew {
 public:
  /// Borrows up to threads - 1.
  explicit Crew(int threads);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  /// Waits for those that began, not for those that did not: they have nothing to do any more.
  ~Crew();

  /// With the leader, whose number is 0.
  int threads() const { return count_ + 1; }
  /// Each of the others calls f(number), once. `f` lives as long as the crew.
  void start(const FunctionRef<void(int)>& f);

 private:
  std::array<Worker*, kMostThreads> workers_;
  int count_ = 0;
  bool started_ = false;
};

/// Where the threads that help the calling one run from now on; none: wherever the calling one may. Except for the
/// processor that the calling thread is on, if there are enough without it.
void help_from(std::span<const int> processors);
/// Whether crews have more threads now than there are processors.
bool crowded();

/// Returns when `value` is no longer `old`, which it has to be told by notify_one() or notify_all().
int32_t wait_while(const std::atomic<int32_t>& value, int32_t old);

}  // namespace moka::kernel
