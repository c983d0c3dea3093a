// SPDX-License-Identifier: Apache-2.0
#include "kernel/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <utility>

#include "kernel/thread_pool.h"

namespace moka::kernel {

namespace {

class SpinBarrier final : public Barrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  void wait() override {
    const int32_t phase = phase_.load();
    if (arrived_.fetch_add(1) + 1 < threads_) {
      while (wait_for_change(phase_, phase) == phase) continue;
      return;
    }
    arrived_.store(0);
    phase_.store(phase + 1);
    phase_.notify_all();
  }

 private:
  const int threads_;
  std::atomic<int32_t> arrived_{0}, phase_{0};
};

using Body = FunctionRef<void(int64_t, int)>;

/// Runs the loops of one caller, one after another, with the help of workers.
class LoopRegion {
 public:
  /// The caller calls this before its first loop.
  void begin(int threads) { threads_ = threads; }
  int threads() const { return threads_; }

  /// Called by the caller. With `pinned`, each thread runs only the iterations in its own range.
  void run(int threads, int32_t count, bool pinned, const Body& f) {
    body_ = &f;
    count_ = count;
    loop_threads_.store(threads, std::memory_order_relaxed);
    pinned_.store(pinned, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    const int32_t loop = loop_.load(std::memory_order_relaxed) + 1;
    for (int t = 0; t < threads; t++)
      left_[static_cast<size_t>(t)].word.store(word(loop, end_of(t) - end_of(t - 1)), std::memory_order_release);
    loop_.store(loop);
    loop_.notify_all();
    const int32_t mine = work(0, loop), theirs = count - mine;
    for (int32_t done = done_.load(std::memory_order_acquire); done < theirs;) done = wait_for_change(done_, done);
    if (failed_.exchange(false)) std::rethrow_exception(std::move(error_));
  }

  void end() {
    ended_.store(true, std::memory_order_relaxed);
    loop_.fetch_add(1);
    loop_.notify_all();
  }

  /// Called by worker `self`: takes part in loops until the region ends.
  void help(int self) {
    for (int32_t loop = 0;;) {
      loop = wait_for_change(loop_, loop);
      if (ended_.load(std::memory_order_relaxed)) return;
      work(self, loop);
    }
  }

 private:
  /// The number of a loop, and how many iterations of one thread's range are left. A worker that arrives after its loop
  /// has ended finds another number or no iterations, so it may read the loop's other fields only after it took an
  /// iteration.
  struct alignas(64) Left {
    std::atomic<uint64_t> word{0};
  };
  static uint64_t word(int32_t loop, int32_t left) {
    return static_cast<uint64_t>(static_cast<uint32_t>(loop)) << 32 | static_cast<uint32_t>(left);
  }

  int32_t end_of(int thread) const {
    return static_cast<int32_t>(int64_t{count_} * (thread + 1) / loop_threads_.load(std::memory_order_relaxed));
  }

  /// Takes an iteration of the thread's range; -1: none left.
  int32_t take(int thread, int32_t loop) {
    auto& left = left_[static_cast<size_t>(thread)].word;
    for (uint64_t now = left.load(std::memory_order_acquire); now > word(loop, 0) && now >> 32 == word(loop, 0) >> 32;)
      if (left.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel, std::memory_order_acquire))
        return end_of(thread) - static_cast<int32_t>(static_cast<uint32_t>(now));
    return -1;
  }

  /// Runs iterations of the thread's own range, then of the other ranges. Returns how many it ran.
  int32_t work(int self, int32_t loop) {
    const int threads = loop_threads_.load(std::memory_order_relaxed),
              ranges = pinned_.load(std::memory_order_relaxed) ? 1 : threads;
    int32_t ran = 0;
    if (self >= threads) return ran;
    for (int other = 0; other < ranges; other++)
      for (int32_t i; (i = take((self + other) % threads, loop)) >= 0; ran++) {
        try {
          (*body_)(i, self);
        } catch (...) {
          if (!failed_.exchange(true)) error_ = std::current_exception();
        }
        if (self != 0) {
          done_.fetch_add(1);
          done_.notify_one();
        }
      }
    return ran;
  }

  int threads_ = 1;
  const Body* body_ = nullptr;
  int32_t count_ = 0;
  std::atomic<int> loop_threads_{1};
  std::atomic<bool> pinned_{false}, ended_{false}, failed_{false};
  std::exception_ptr error_;
  std::array<Left, kMostThreads> left_;
  alignas(64) std::atomic<int32_t> loop_{0};
  alignas(64) std::atomic<int32_t> done_{0};
};

thread_local LoopRegion* current = nullptr;  ///< the region whose loops this thread may start
thread_local bool in_region = false;         ///< the thread is in a region, as its caller or as a worker

/// Makes the calling thread the caller of a region.
class LoopRegionScope {
 public:
  explicit LoopRegionScope(LoopRegion& region) : region_(region) {
    in_region = true;
    current = &region;
  }
  LoopRegionScope(const LoopRegionScope&) = delete;
  LoopRegionScope& operator=(const LoopRegionScope&) = delete;
  ~LoopRegionScope() {
    current = nullptr;
    in_region = false;
    region_.end();
  }

 private:
  LoopRegion& region_;
};

/// Prevents a loop's body from starting another loop in the same region.
class LoopScope {
 public:
  LoopScope() : region_(current) { current = nullptr; }
  LoopScope(const LoopScope&) = delete;
  LoopScope& operator=(const LoopScope&) = delete;
  ~LoopScope() { current = region_; }

 private:
  LoopRegion* const region_;
};

}  // namespace

void parallel_region(int threads, FunctionRef<void()> f) {
  if (threads <= 1 || in_region) return f();
  LoopRegion region;
  const auto help = [&](int self) {
    in_region = true;
    region.help(self);
    in_region = false;
  };
  const FunctionRef<void(int)> work(help);
  PoolWorkers workers(threads);
  region.begin(workers.threads());
  workers.start(work);
  const LoopRegionScope scope(region);
  f();
}

void parallel_for(int threads, int64_t count, FunctionRef<void(int64_t i, int thread)> f) {
  constexpr int64_t kMostIterations = int64_t{1} << 30;
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads > 1 && !in_region) return parallel_region(threads, [&] { parallel_for(threads, count, f); });
  const int available = current == nullptr ? 1 : std::min(threads, current->threads());
  if (available <= 1) {
    for (int64_t i = 0; i < count; i++) f(i, 0);
    return;
  }
  const int64_t chunk = (count + kMostIterations - 1) / kMostIterations;
  LoopRegion& region = *current;
  const LoopScope scope;
  region.run(available, static_cast<int32_t>((count + chunk - 1) / chunk), false, [&](int64_t c, int thread) {
    for (int64_t i = c * chunk; i < std::min(count, (c + 1) * chunk); i++) f(i, thread);
  });
}

void on_each_thread(int threads, FunctionRef<void(int thread, int count, Barrier& barrier)> f) {
  if (threads > 1 && !in_region) return parallel_region(threads, [&] { on_each_thread(threads, f); });
  const int count = current == nullptr ? 1 : std::min(threads, current->threads());
  SpinBarrier barrier(count);
  if (count <= 1) return f(0, 1, barrier);
  LoopRegion& region = *current;
  const LoopScope scope;
  region.run(count, count, true, [&](int64_t, int thread) { f(thread, count, barrier); });
}

}  // namespace moka::kernel
