#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <type_traits>

namespace moka::runtime {

/// OpenMP's threads do not survive fork(), but the forking thread's memory of them does: its next parallel region would
/// wait for them forever. Work that may start one therefore runs, in the child, on a thread made there.

/// Watches for forks from now on. Idempotent.
void watch_forks();
/// True in a forked child, on the thread that called fork.
bool lost_its_team();
/// Runs `work` on the child's own thread and waits. `work` must not throw.
void run_on_new_team(const std::function<void()>& work);

/// f(), where OpenMP can run. Passes on its exceptions.
template <class F>
auto with_team(F&& f) -> std::invoke_result_t<F> {
  if (!lost_its_team()) return f();
  std::exception_ptr error;
  if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
    run_on_new_team([&] {
      try {
        f();
      } catch (...) {
        error = std::current_exception();
      }
    });
    if (error) std::rethrow_exception(error);
  } else {
    std::optional<std::invoke_result_t<F>> result;
    run_on_new_team([&] {
      try {
        result.emplace(f());
      } catch (...) {
        error = std::current_exception();
      }
    });
    if (error) std::rethrow_exception(error);
    return std::move(*result);
  }
}

}  // namespace moka::runtime
