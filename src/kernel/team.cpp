#include "kernel/team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <utility>

#include "kernel/workers.h"

namespace moka::kernel {

namespace {

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

/// Jobs of one thread, the leader, that its crew helps with.
class Team {
 public:
  /// Of the leader, before there are jobs.
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
thread_local bool member = false;  ///< of a team, as its leader or as another

/// While the calling thread leads a team.
class Leads {
 public:
  explicit Leads(Team& team) : team_(team) {
    member = true;
    current = &team;
  }
  Leads(const Leads&) = delete;
  Leads& operator=(const Leads&) = delete;
  ~Leads() {
    current = nullptr;
    member = false;
    team_.leave();
  }

 private:
  Team& team_;
};

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

}  // namespace

void with_team(int threads, FunctionRef<void()> f) {
  if (threads <= 1 || member) return f();
  Team team;
  const auto follow = [&](int self) {
    member = true;
    team.follow(self);
    member = false;
  };
  const FunctionRef<void(int)> work(follow);
  Crew crew(threads);
  team.begin(crew.threads());
  crew.start(work);
  const Leads leads(team);
  f();
}

void share(int threads, int64_t parts, FunctionRef<void(int64_t part, int thread)> f) {
  constexpr int64_t kMostParts = int64_t{1} << 30;
  threads = static_cast<int>(std::min<int64_t>(threads, parts));
  if (threads > 1 && !member) return with_team(threads, [&] { share(threads, parts, f); });
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
  if (threads > 1 && !member) return with_team(threads, [&] { together(threads, f); });
  const int of = current == nullptr ? 1 : std::min(threads, current->threads());
  SpinBarrier barrier(of);
  if (of <= 1) return f(0, 1, barrier);
  Team& team = *current;
  const Busy busy;
  team.run(of, of, true, [&](int64_t, int thread) { f(thread, of, barrier); });
}

}  // namespace moka::kernel
