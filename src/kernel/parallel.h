// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

/// Divides the work of a calling thread among workers of the process's thread pool (thread_pool.h).
///
///   parallel_for      runs the iterations of a loop, in any order
///   on_each_thread    runs one function on several threads at once; they can wait for each other at a barrier
///   parallel_region   keeps the workers from one of these calls to the next
///
/// A prediction is one region, and each of its steps is a loop:
///
///   parallel_region(threads, [&] {
///     for (const Step& step : steps)
///       parallel_for(threads, step.tiles, [&](int64_t tile, int thread) { step.run(tile, scratch_of(thread)); });
///   });
///
/// Threads are numbered from 0, the caller. Fewer than `threads` take part when the pool has no more workers. A call
/// inside a loop's body runs on that thread alone. Exceptions reach the caller; nothing allocates.
namespace moka::kernel {

constexpr int kMostThreads = 64;  // threads per caller

/// A reference to a function. It must not outlive the call that it is passed to.
template <class Signature>
class FunctionRef;
template <class... Args>
class FunctionRef<void(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& f)
      // call_ restores the type, with its const.
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) { (*static_cast<std::remove_reference_t<F>*>(object))(args...); }) {}
  void operator()(Args... args) const { call_(object_, args...); }

 private:
  void* object_;
  void (*call_)(void*, Args...);
};

/// Calls f on the calling thread and keeps up to `threads` - 1 workers ready. Taking workers from the pool costs more
/// than a short loop, so a region should hold all loops of a prediction. Inside another region it only calls f.
void parallel_region(int threads, FunctionRef<void()> f);

/// Calls f(i, thread) for each i in [0, count). In every loop of this size each thread begins with the same range of i,
/// so its data is in its caches; it then takes iterations from other threads. The loop ends with its last iteration and
/// does not wait for a worker that has not arrived.
void parallel_for(int threads, int64_t count, FunctionRef<void(int64_t i, int thread)> f);

/// A point where all threads of on_each_thread() wait for each other.
class Barrier {
 public:
  virtual void wait() = 0;

 protected:
  ~Barrier() = default;
};

/// Calls f(thread, count, barrier) once on each of `count` threads at the same time. `count` is at most `threads`.
void on_each_thread(int threads, FunctionRef<void(int thread, int count, Barrier& barrier)> f);

}  // namespace moka::kernel
