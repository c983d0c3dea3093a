#include "kernel/team.h"

#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <utility>

namespace moka::kernel {

namespace {

constexpr int kSpins = 400000;   // longer than a time slice, after which who is waited for runs again
constexpr int kFewSpins = 1000;  // where threads wait for each other's processors

std::atomic<int> teamed{0};  ///< threads of all teams

int spins() {
  static const int processors = omp_get_num_procs();
  return teamed.load(std::memory_order_relaxed) > processors ? kFewSpins : kSpins;
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Returns when `value` is no longer `old`.
int32_t wait_while(const std::atomic<int32_t>& value, int32_t old) {
  for (int i = spins(); i > 0; i--) {
    if (const int32_t now = value.load(std::memory_order_acquire); now != old) return now;
    pause();
  }
  value.wait(old);
  return value.load();
}

class SpinBarrier final : public Barrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  void wait() override {
    const int32_t phase = phase_.load();
    if (arrived_.fetch_add(1) + 1 < threads_) {
      while (wait_while(phase_, phase) == phase) continue;
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

using Part = FunctionRef<void(int64_t, int)>;

/// Jobs of one thread, the leader, that the others of a parallel region help with.
class Team {
 public:
  /// Of the leader, within the parallel region; before, there are no jobs.
  void begin(int threads) { threads_ = threads; }
  int threads() const { return threads_; }

  /// Of the leader, who is thread 0. `own`: each thread runs the part of its number only.
  void run(int threads, int32_t parts, bool own, const Part& f) {
    job_ = &f;
    parts_ = parts;
    of_.store(threads, std::memory_order_relaxed);
    own_.store(own, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    const int32_t turn = turn_.load(std::memory_order_relaxed) + 1;
    for (int t = 0; t < threads; t++)
      left_[static_cast<size_t>(t)].word.store(word(turn, end_of(t) - end_of(t - 1)), std::memory_order_release);
    turn_.store(turn);
    turn_.notify_all();
    const int32_t mine = help(0, turn), theirs = parts - mine;
    for (int32_t done = done_.load(std::memory_order_acquire); done < theirs;) done = wait_while(done_, done);
    if (failed_.exchange(false)) std::rethrow_exception(std::move(error_));
  }

  void leave() {
    leaves_.store(true, std::memory_order_relaxed);
    turn_.fetch_add(1);
    turn_.notify_all();
  }

  /// Of the other threads.
  void follow(int self) {
    for (int32_t turn = 0;;) {
      turn = wait_while(turn_, turn);
      if (leaves_.load(std::memory_order_relaxed)) return;
      help(self, turn);
    }
  }

 private:
  /// The number of a job and how many parts of a thread's share nobody took. A thread that comes when its job has ended
  /// finds another number or no parts, so what a job consists of is read only once a part of it is taken.
  struct alignas(64) Left {
    std::atomic<uint64_t> word{0};
  };
  static uint64_t word(int32_t turn, int32_t left) {
    return static_cast<uint64_t>(static_cast<uint32_t>(turn)) << 32 | static_cast<uint32_t>(left);
  }

  int32_t end_of(int thread) const {
    return static_cast<int32_t>(int64_t{parts_} * (thread + 1) / of_.load(std::memory_order_relaxed));
  }

  /// A part of the thread's share, -1 for none.
  int32_t take(int thread, int32_t turn) {
    auto& left = left_[static_cast<size_t>(thread)].word;
    for (uint64_t now = left.load(std::memory_order_acquire); now > word(turn, 0) && now >> 32 == word(turn, 0) >> 32;)
      if (left.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel, std::memory_order_acquire))
        return end_of(thread) - static_cast<int32_t>(static_cast<uint32_t>(now));
    return -1;
  }

  /// How many parts it ran.
  int32_t help(int self, int32_t turn) {
    const int of = of_.load(std::memory_order_relaxed), others = own_.load(std::memory_order_relaxed) ? 1 : of;
    int32_t ran = 0;
    if (self >= of) return ran;
    for (int other = 0; other < others; other++)
      for (int32_t part; (part = take((self + other) % of, turn)) >= 0; ran++) {
        try {
          (*job_)(part, self);
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
  const Part* job_ = nullptr;
  int32_t parts_ = 0;
  std::atomic<int> of_{1};
  std::atomic<bool> own_{false}, leaves_{false}, failed_{false};
  std::exception_ptr error_;
  std::array<Left, kMostThreads> left_;
  alignas(64) std::atomic<int32_t> turn_{0};
  alignas(64) std::atomic<int32_t> done_{0};
};

thread_local Team* current = nullptr;

/// While a leader runs a job it leads no other one.
class Busy {
 public:
  Busy() : team_(current) { current = nullptr; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() { current = team_; }

 private:
  Team* const team_;
};

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

/// Where the threads of the calling thread's OpenMP team may run. New threads often begin on their leader's processor,
/// and woken ones too, where each waits for the other's time slice until the system moves one of them. So others are
/// kept off the leader's. Does nothing where the caller binds threads, or for more threads than processors.
class Places {
 public:
  /// Of the leader, outside of the team.
  void arrange(int threads) {
    const int now = sched_getcpu();
    if (now < 0 || now >= CPU_SETSIZE || threads >= crowd_ || (now == leader_ && threads <= known_)) return;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    if (threads > CPU_COUNT(&allowed)) {
      crowd_ = threads;
      return;
    }
    leader_ = now;
    cpu_set_t others = allowed;
    CPU_CLR(now, &others);
    if (threads > known_) return meet(threads, allowed, others);
    for (int i = 1; i < known_; i++)
      if (const pid_t id = ids_[static_cast<size_t>(i)]; id != 0) sched_setaffinity(id, sizeof others, &others);
  }

 private:
  void meet(int threads, const cpu_set_t& allowed, const cpu_set_t& others) {
    known_ = threads;
    ids_.fill(0);
    Taken taken;
    taken.take(leader_);
    std::atomic<int> done{0};
#pragma omp parallel num_threads(threads)
    {
      if (const int self = omp_get_thread_num(); self != 0) {
        cpu_set_t own;
        // Those that are bound already are left alone; those that an earlier meeting has moved are not.
        if (sched_getaffinity(0, sizeof own, &own) == 0 && (CPU_EQUAL(&own, &allowed) || !fresh())) {
          ids_[static_cast<size_t>(self)] = static_cast<pid_t>(syscall(SYS_gettid));
          fresh() = false;
          leave_what_is_taken(taken, others);
        }
        done.fetch_add(1, std::memory_order_release);
      } else {
        // A thread on this processor gets it only if it is given away.
        for (int i = 0; i < 1000 && done.load(std::memory_order_acquire) + 1 < omp_get_num_threads(); i++)
          sched_yield();
      }
    }
  }

  static bool& fresh() {
    thread_local bool is = true;
    return is;
  }

  static void leave_what_is_taken(Taken& taken, const cpu_set_t& others) {
    const int now = sched_getcpu();
    bool moved = now >= 0 && now < CPU_SETSIZE && taken.take(now);
    for (int i = 0; i < CPU_SETSIZE && !moved; i++) {
      moved = CPU_ISSET(i, &others) && taken.take(i);
      if (!moved) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(i, &one);
      sched_setaffinity(0, sizeof one, &one);
    }
    sched_setaffinity(0, sizeof others, &others);
  }

  int leader_ = -1, known_ = 1;   ///< the leader's processor; the size of the largest team so far
  int crowd_ = kMostThreads + 1;  ///< a size for which there are too few processors
  std::array<pid_t, kMostThreads> ids_{};
};

}  // namespace

void with_team(int threads, FunctionRef<void()> f) {
  threads = std::min(threads, kMostThreads);
  if (threads <= 1 || omp_in_parallel() != 0) return f();
  thread_local Places places;
  places.arrange(threads);
  Team team;
  teamed.fetch_add(threads);
  std::exception_ptr error;  // which must not leave the region
#pragma omp parallel num_threads(threads) shared(team, error)
  {
    if (omp_get_thread_num() == 0) {
      team.begin(omp_get_num_threads());
      current = &team;
      try {
        f();
      } catch (...) {
        error = std::current_exception();
      }
      current = nullptr;
      team.leave();
    } else {
      team.follow(omp_get_thread_num());
    }
  }
  teamed.fetch_sub(threads);
  if (error) std::rethrow_exception(std::move(error));
}

void share(int threads, int64_t parts, FunctionRef<void(int64_t part, int thread)> f) {
  constexpr int64_t kMostParts = int64_t{1} << 30;
  threads = static_cast<int>(std::min<int64_t>(threads, parts));
  if (threads > 1 && current == nullptr && omp_in_parallel() == 0)
    return with_team(threads, [&] { share(threads, parts, f); });
  const int of = current == nullptr ? 1 : std::min(threads, current->threads());
  if (of <= 1) {
    for (int64_t part = 0; part < parts; part++) f(part, 0);
    return;
  }
  const int64_t each = (parts + kMostParts - 1) / kMostParts;
  Team& team = *current;
  const Busy busy;
  team.run(of, static_cast<int32_t>((parts + each - 1) / each), false, [&](int64_t i, int thread) {
    for (int64_t part = i * each; part < std::min(parts, (i + 1) * each); part++) f(part, thread);
  });
}

void together(int threads, FunctionRef<void(int thread, int of, Barrier& barrier)> f) {
  if (threads > 1 && current == nullptr && omp_in_parallel() == 0)
    return with_team(threads, [&] { together(threads, f); });
  const int of = current == nullptr ? 1 : std::min(threads, current->threads());
  SpinBarrier barrier(of);
  if (of <= 1) return f(0, 1, barrier);
  Team& team = *current;
  const Busy busy;
  team.run(of, of, true, [&](int64_t, int thread) { f(thread, of, barrier); });
}

}  // namespace moka::kernel
