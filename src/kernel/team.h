#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

/// Threads that share the work of a step.
namespace moka::kernel {

constexpr int kMostThreads = 64;  // of one step

/// Refers to a function for as long as the function that takes it runs.
template <class Signature>
class FunctionRef;
template <class... Args>
class FunctionRef<void(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) { (*static_cast<std::remove_reference_t<F>*>(object))(args...); }) {}
  void operator()(Args... args) const { call_(object_, args...); }

 private:
  void* object_;
  void (*call_)(void*, Args...);
};

/// Calls f with a team of up to `threads` that waits for the calling thread's share() and together(): forming it anew
/// for each of them takes longer. In a team already only calls f.
void with_team(int threads, FunctionRef<void()> f);

/// f(part, thread) for each part of [0, parts) on up to `threads`, of which the caller is 0. A thread begins with the
/// same share each time, whose data is in its caches, and then helps the others; one that does not come is not waited
/// for. Forms a team where there is none.
void share(int threads, int64_t parts, FunctionRef<void(int64_t part, int thread)> f);

/// A place where the threads of together() wait for each other.
class Barrier {
 public:
  virtual void wait() = 0;

 protected:
  ~Barrier() = default;
};

/// f(thread, of, barrier) at the same time on `of` threads, as many of `threads` as there are.
void together(int threads, FunctionRef<void(int thread, int of, Barrier& barrier)> f);

}  // namespace moka::kernel
