// SPDX-License-Identifier: Apache-2.0
#include "kernel/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/processors.h"
#include "trace/trace.h"

namespace moka::kernel {

namespace {

constexpr int kSpins = 4000;     // about the time to put a thread to sleep and to wake it
constexpr int kFewSpins = 1000;  // limit when oversubscribed: the other thread may need this processor
constexpr int kYields = 1000;  // time slices that others get before this thread sleeps; none of them costs this process
constexpr int kIdleSpins = 4000;  // limit for an idle worker, about the pause between two predictions

std::atomic<int> threads_in_use{0};  ///< callers and their workers

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// A calling thread, the processor where it was last seen, and the processors where it may run.
struct Caller {
  uint64_t id = 0;
  uint64_t placement = 0;  ///< changes when its workers must be placed again
  int processor = -1;
  cpu_set_t allowed;
  bool has_chosen = false;  ///< place_workers() specified processors
  cpu_set_t chosen;

  void update() {
    static std::atomic<uint64_t> ids{0};
    if (id == 0) id = ids.fetch_add(1) + 1;
    const int now = sched_getcpu();
    if (now == processor) return;
    if (now < 0 || now >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
      processor = -1;
      return;
    }
    processor = now;
    placement++;
  }
};

thread_local Caller caller;

}  // namespace

class Worker {
 public:
  /// Throws std::system_error when the system cannot start another thread.
  Worker() {
    std::thread thread([this] { serve(); });
    handle_ = thread.native_handle();
    thread.detach();
  }

  void start(const FunctionRef<void(int)>& f, int number) {
    job_ = &f;
    number_ = number;
    state_.store(kAsked);
    state_.notify_one();
  }

  /// Returns when the worker has finished its job or can no longer begin it.
  void finish() {
    int32_t state = kAsked;
    if (state_.compare_exchange_strong(state, kIdle)) return;
    while (state == kBusy) state = wait_for_change(state_, kBusy);
  }

  /// Whether the worker last worked for this caller under this number.
  bool last_served(uint64_t id, int number) const { return caller_ == id && number_ == number; }

  /// The system often starts or wakes a thread on the processor of the thread that woke it. The two would then share
  /// the processor for several time slices, so a worker stays off its caller's processor when there are enough others.
  void place(const Caller& by, int number, int threads) {
    cpu_set_t others = by.has_chosen ? by.chosen : by.allowed;
    const bool apart = threads <= CPU_COUNT(&others);
    if (by.processor < 0 || (caller_ == by.id && placement_ == by.placement && apart_ == apart)) return;
    const bool fresh = caller_ == 0;
    caller_ = by.id;
    placement_ = by.placement;
    apart_ = apart;
    if (apart) {
      CPU_CLR(by.processor, &others);
      if (fresh) move_to(number, others);
    }
    pthread_setaffinity_np(handle_, sizeof others, &others);
  }

 private:
  static constexpr int32_t kIdle = 0, kAsked = 1, kBusy = 2;

  void serve() {
    for (;;) {
      for (int i = kIdleSpins; i > 0 && state_.load(std::memory_order_relaxed) == kIdle; i--) pause();
      state_.wait(kIdle);
      int32_t state = kAsked;
      if (!state_.compare_exchange_strong(state, kBusy)) continue;
      (*job_)(number_);
      state_.store(kIdle);
      state_.notify_one();
    }
  }

  /// Moves the worker to the `number`th processor of `allowed`, counted from 1.
  void move_to(int number, const cpu_set_t& allowed) {
    for (int i = 0; i < CPU_SETSIZE; i++) {
      if (!CPU_ISSET(i, &allowed) || --number > 0) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(i, &one);
      pthread_setaffinity_np(handle_, sizeof one, &one);
      return;
    }
  }

  alignas(64) std::atomic<int32_t> state_{kIdle};
  const FunctionRef<void(int)>* job_ = nullptr;
  int number_ = 0;
  uint64_t caller_ = 0, placement_ = 0;
  bool apart_ = false;
  pthread_t handle_{};
};

namespace {

/// All workers of the process. The pool is never freed, because its threads run until the process ends.
class Pool {
 public:
  static Pool& get() {
    static Pool& pool = *new Pool;
    return pool;
  }

  /// Stores up to threads - 1 workers in `to` and returns their number.
  int acquire(int threads, Worker** to) {
    const std::lock_guard lock(mutex_);
    const int room = std::max(processors(), threads) - threads_in_use.load(std::memory_order_relaxed) - 1;
    const int wanted = std::min(threads - 1, room);
    int count = 0;
    while (count < wanted && (to[count] = take(count + 1)) != nullptr) count++;
    threads_in_use.fetch_add(count + 1, std::memory_order_relaxed);
    return count;
  }

  void release(Worker** from, int count) {
    const std::lock_guard lock(mutex_);
    idle_.insert(idle_.end(), from, from + count);
    threads_in_use.fetch_sub(count + 1, std::memory_order_relaxed);
  }

 private:
  Pool() {
    idle_.reserve(kMostThreads);
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().forked(); });
  }

  Worker* take(int number) {
    if (idle_.empty()) return make();
    auto it = std::find_if(idle_.begin(), idle_.end(), [&](Worker* w) { return w->last_served(caller.id, number); });
    if (it == idle_.end()) it = std::prev(idle_.end());
    Worker* const worker = *it;
    idle_.erase(it);
    return worker;
  }

  Worker* make() {
    try {
      all_.push_back(std::make_unique<Worker>());
      idle_.reserve(all_.size());
      return all_.back().get();
    } catch (const std::system_error&) {
      return nullptr;  // too many threads or too little memory: the caller continues with fewer workers
    }
  }

  /// Only the thread that forked exists in the child. The workers' threads are gone, so their objects are left alone.
  void forked() {
    threads_in_use.store(0);
    idle_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> all_;
  std::vector<Worker*> idle_;
};

}  // namespace

PoolWorkers::PoolWorkers(int threads) {
  caller.update();
  count_ = Pool::get().acquire(std::min(threads, kMostThreads), workers_.data());
  for (int i = 0; i < count_; i++) workers_[static_cast<size_t>(i)]->place(caller, i + 1, threads);
  if (trace::is_on()) trace::counter(trace::Counter::threads, threads_in_use.load(std::memory_order_relaxed));
}

PoolWorkers::~PoolWorkers() {
  if (started_)
    for (int i = 0; i < count_; i++) workers_[static_cast<size_t>(i)]->finish();
  Pool::get().release(workers_.data(), count_);
  if (trace::is_on()) trace::counter(trace::Counter::threads, threads_in_use.load(std::memory_order_relaxed));
}

void PoolWorkers::start(const FunctionRef<void(int)>& f) {
  started_ = true;
  for (int i = 0; i < count_; i++) workers_[static_cast<size_t>(i)]->start(f, i + 1);
}

void place_workers(std::span<const int> processors) {
  if (processors.empty() && !caller.has_chosen) return;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (int p : processors) CPU_SET(p, &chosen);
  if (caller.has_chosen == !processors.empty() && CPU_EQUAL(&chosen, &caller.chosen)) return;
  caller.has_chosen = !processors.empty();
  caller.chosen = chosen;
  caller.placement++;
}

bool oversubscribed() { return threads_in_use.load(std::memory_order_relaxed) > processors(); }

int32_t wait_for_change(const std::atomic<int32_t>& value, int32_t old) {
  const bool few = oversubscribed();
  for (int i = few ? kFewSpins : kSpins; i > 0; i--) {
    if (const int32_t now = value.load(std::memory_order_acquire); now != old) return now;
    pause();
  }
  // What this thread waits for may have been preempted by another process: spinning on would burn what that one leaves.
  for (int i = few ? 0 : kYields; i > 0; i--) {
    if (const int32_t now = value.load(std::memory_order_acquire); now != old) return now;
    sched_yield();
  }
  value.wait(old);
  return value.load();
}

}  // namespace moka::kernel
