#include "kernel/workers.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/processors.h"

namespace moka::kernel {

namespace {

constexpr int kSpins = 400000;    // longer than a time slice, after which who is waited for runs again
constexpr int kFewSpins = 1000;   // where threads wait for each other's processors
constexpr int kIdleSpins = 4000;  // of who nobody waits for: the pause between two predictions

std::atomic<int> lent{0};  ///< threads of all crews, leaders too

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Where a thread that leads runs, and may run.
struct Leader {
  uint64_t id = 0;     ///< of the thread
  uint64_t place = 0;  ///< changes when the thread is seen on another processor
  int processor = -1;
  cpu_set_t allowed;
  bool chose = false;  ///< the processors of its crews
  cpu_set_t chosen;

  void look() {
    static std::atomic<uint64_t> ids{0};
    if (id == 0) id = ids.fetch_add(1) + 1;
    const int now = sched_getcpu();
    if (now == processor) return;
    if (now < 0 || now >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
      processor = -1;
      return;
    }
    processor = now;
    place++;
  }
};

thread_local Leader leader;

}  // namespace

class Worker {
 public:
  /// Throws std::system_error when there is no thread to be had.
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

  /// Returns when it has done what it was started for, or will not begin.
  void finish() {
    int32_t state = kAsked;
    if (state_.compare_exchange_strong(state, kIdle)) return;
    while (state == kBusy) state = wait_while(state_, kBusy);
  }

  /// Whether it last helped this leader under this number.
  bool knows(uint64_t who, int number) const { return leader_ == who && number_ == number; }

  /// New threads often begin on the processor of who made them, and woken ones too, where each waits for the other's
  /// time slice until the system moves one of them. So workers are kept off their leader's processor, where there are
  /// others.
  void place(const Leader& of, int number, int threads) {
    cpu_set_t others = of.chose ? of.chosen : of.allowed;
    const bool apart = threads <= CPU_COUNT(&others);
    if (of.processor < 0 || (leader_ == of.id && place_ == of.place && apart_ == apart)) return;
    const bool fresh = leader_ == 0;
    leader_ = of.id;
    place_ = of.place;
    apart_ = apart;
    if (apart) {
      CPU_CLR(of.processor, &others);
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

  /// The processor of that number among `allowed`, from 1.
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
  uint64_t leader_ = 0, place_ = 0;
  bool apart_ = false;
  pthread_t handle_{};
};

namespace {

/// All workers of the process. Never freed: its threads run until the process ends.
class Pool {
 public:
  static Pool& get() {
    static Pool& pool = *new Pool;
    return pool;
  }

  /// How many.
  int lend(int threads, Worker** to) {
    const std::lock_guard lock(mutex_);
    const int room = std::max(processors(), threads) - lent.load(std::memory_order_relaxed) - 1;
    const int wanted = std::min(threads - 1, room);
    int count = 0;
    while (count < wanted && (to[count] = take(count + 1)) != nullptr) count++;
    lent.fetch_add(count + 1, std::memory_order_relaxed);
    return count;
  }

  void give_back(Worker** from, int count) {
    const std::lock_guard lock(mutex_);
    idle_.insert(idle_.end(), from, from + count);
    lent.fetch_sub(count + 1, std::memory_order_relaxed);
  }

 private:
  Pool() {
    idle_.reserve(kMostThreads);
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().forked(); });
  }

  Worker* take(int number) {
    if (idle_.empty()) return make();
    auto it = std::find_if(idle_.begin(), idle_.end(), [&](Worker* w) { return w->knows(leader.id, number); });
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
      return nullptr;  // too many threads or too little memory: those that are there do the work
    }
  }

  /// The child has one thread, which leads no crew, and the memory of the others.
  void forked() {
    lent.store(0);
    idle_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> all_;
  std::vector<Worker*> idle_;
};

}  // namespace

Crew::Crew(int threads) {
  leader.look();
  count_ = Pool::get().lend(std::min(threads, kMostThreads), workers_.data());
  for (int i = 0; i < count_; i++) workers_[static_cast<size_t>(i)]->place(leader, i + 1, threads);
}

Crew::~Crew() {
  if (started_)
    for (int i = 0; i < count_; i++) workers_[static_cast<size_t>(i)]->finish();
  Pool::get().give_back(workers_.data(), count_);
}

void Crew::start(const FunctionRef<void(int)>& f) {
  started_ = true;
  for (int i = 0; i < count_; i++) workers_[static_cast<size_t>(i)]->start(f, i + 1);
}

void help_from(std::span<const int> processors) {
  if (processors.empty() && !leader.chose) return;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (int p : processors) CPU_SET(p, &chosen);
  if (leader.chose == !processors.empty() && CPU_EQUAL(&chosen, &leader.chosen)) return;
  leader.chose = !processors.empty();
  leader.chosen = chosen;
  leader.place++;
}

bool crowded() { return lent.load(std::memory_order_relaxed) > processors(); }

int32_t wait_while(const std::atomic<int32_t>& value, int32_t old) {
  for (int i = crowded() ? kFewSpins : kSpins; i > 0; i--) {
    if (const int32_t now = value.load(std::memory_order_acquire); now != old) return now;
    pause();
  }
  value.wait(old);
  return value.load();
}

}  // namespace moka::kernel
