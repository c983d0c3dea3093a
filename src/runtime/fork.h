#pragma once

#include <functional>
#include <future>
#include <type_traits>
#include <utility>

namespace moka::runtime {

/// OpenMP's threads do not survive fork(), but the forking thread's memory of them does: its next parallel region would
/// wait for them forever. Work that may start one therefore runs, in the child, on a thread made there.

/// Watches for forks from now on. Idempotent.
void watch_forks();
/// True in a forked child, on the thread that called fork.
bool lost_its_team();
/// Runs `work` on the child's own thread and waits. `work` must not throw.
void run_on_new_team(const std::function<void()>& work);

/// f() on the child's own thread. Passes on its result and exceptions.
template <class F>
auto with_team(F&& f) {
  std::packaged_task<std::invoke_result_t<F>()> task(std::forward<F>(f));
  auto result = task.get_future();
  run_on_new_team([&] { task(); });
  return result.get();
}

}  // namespace moka::runtime
