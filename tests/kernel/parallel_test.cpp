// SPDX-License-Identifier: Apache-2.0
#include "kernel/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernel/thread_pool.h"

namespace moka::kernel {
namespace {

/// How often each iteration ran, and the highest thread number.
struct Counts {
  explicit Counts(int64_t iterations) : of(static_cast<size_t>(iterations)) {}
  void run(int threads) {
    parallel_for(threads, static_cast<int64_t>(of.size()), [&](int64_t i, int thread) {
      of[static_cast<size_t>(i)].fetch_add(1);
      for (int most = highest.load(); most < thread && !highest.compare_exchange_weak(most, thread);) continue;
    });
  }
  void expect(int times, int threads) const {
    for (size_t i = 0; i < of.size(); i++) ASSERT_EQ(of[i], times) << "iteration " << i;
    EXPECT_LT(highest, threads);
  }
  std::vector<std::atomic<int>> of;
  std::atomic<int> highest{0};
};

TEST(ParallelFor, RunsEveryIterationOnce) {
  for (int threads : {1, 2, 3, 7})
    for (int64_t iterations : {0, 1, 2, 5, 64, 1000}) {
      Counts counts(iterations);
      counts.run(threads);
      counts.expect(1, threads);
    }
}

#if defined(__linux__)
cpu_set_t allowed_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

/// The processors that the thread with number 1 may use.
cpu_set_t allowed_of_other() {
  cpu_set_t set;
  CPU_ZERO(&set);
  on_each_thread(2, [&](int thread, int, Barrier&) {
    if (thread == 1) set = allowed_here();
  });
  return set;
}

/// Otherwise a woken worker may wait for the processor of the thread that woke it.
TEST(Workers, KeepOffTheCallersProcessor) {
  const cpu_set_t allowed = allowed_here();
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one processor only";
  int seen = 0;
  for (int i = 0; i < CPU_SETSIZE && seen < 4; i++) {
    if (!CPU_ISSET(i, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    // Moves the caller to that processor. If the system moves it away again, this round proves nothing.
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    const int before = sched_getcpu();
    cpu_set_t other = allowed_of_other();
    const cpu_set_t own = allowed_here();
    EXPECT_TRUE(CPU_EQUAL(&own, &allowed));
    if (before != i || sched_getcpu() != i) continue;
    seen++;
    EXPECT_FALSE(CPU_ISSET(i, &other)) << "processor " << i;
    CPU_SET(i, &other);
    EXPECT_TRUE(CPU_EQUAL(&other, &allowed)) << "processor " << i;
  }
  EXPECT_GT(seen, 0);
}

TEST(Workers, KeepOffItAgainAfterOversubscription) {
  const cpu_set_t allowed = allowed_here();
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one processor only";
  int seen = 0;
  for (int i = 0; i < 1000 && seen < 3; i++) {
    const int before = sched_getcpu();
    on_each_thread(CPU_COUNT(&allowed) + 1, [](int, int, Barrier& barrier) { barrier.wait(); });
    cpu_set_t other = allowed_of_other();
    if (sched_getcpu() != before) continue;
    seen += !CPU_ISSET(before, &other);
  }
  EXPECT_EQ(seen, 3);
}

TEST(Workers, RunOnTheProcessorsTheyAreGiven) {
  std::thread([] {
    const cpu_set_t allowed = allowed_here();
    for (int i = 0; i < CPU_SETSIZE; i++) {
      if (!CPU_ISSET(i, &allowed)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(i, &one);
      place_workers(std::array{i});
      const cpu_set_t other = allowed_of_other(), own = allowed_here();
      EXPECT_TRUE(CPU_EQUAL(&other, &one)) << "processor " << i;
      EXPECT_TRUE(CPU_EQUAL(&own, &allowed));
    }
    place_workers({});
    cpu_set_t other = allowed_of_other();
    if (CPU_COUNT(&other) < CPU_COUNT(&allowed)) CPU_SET(sched_getcpu(), &other);
    EXPECT_GE(CPU_COUNT(&other), CPU_COUNT(&allowed) - 1);
  }).join();
}

TEST(Workers, StayWhereTheCallerIsBound) {
  std::thread([] {
    const int here = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < 3; i++) {
      const cpu_set_t other = allowed_of_other(), own = allowed_here();
      EXPECT_TRUE(CPU_EQUAL(&own, &one));
      EXPECT_TRUE(CPU_EQUAL(&other, &one));
    }
  }).join();
}
#endif

/// Loops follow each other so quickly that workers arrive at loops that have ended.
TEST(ParallelRegion, RunsManyLoops) {
  constexpr int kTimes = 20000;
  Counts few(3), more(8), some(5);
  parallel_region(3, [&] {
    for (int i = 0; i < kTimes; i++) {
      few.run(3);
      more.run(2);
      some.run(8);
    }
  });
  few.expect(kTimes, 3);
  more.expect(kTimes, 2);
  some.expect(kTimes, 3);
}

TEST(ParallelRegion, ResultsAreVisibleToTheCaller) {
  constexpr int kIterations = 16, kTimes = 2000;
  std::vector<int64_t> values(kIterations);
  int64_t sum = 0;
  parallel_region(4, [&] {
    for (int i = 0; i < kTimes; i++) {
      parallel_for(4, kIterations, [&](int64_t i, int) { values[static_cast<size_t>(i)] += i; });
      sum = std::accumulate(values.begin(), values.end(), int64_t{0});
    }
  });
  EXPECT_EQ(sum, int64_t{kTimes} * kIterations * (kIterations - 1) / 2);
}

TEST(OnEachThread, BarrierWaitsForAll) {
  constexpr int kThreads = 3, kSteps = 500;
  std::vector<int> step(kThreads);
  std::atomic<int> wrong{0}, all{0};
  parallel_region(kThreads, [&] {
    on_each_thread(kThreads, [&](int thread, int count, Barrier& barrier) {
      all = count;
      for (int i = 1; i <= kSteps; i++) {
        step[static_cast<size_t>(thread)] = i;
        barrier.wait();
        for (int other = 0; other < count; other++) wrong += step[static_cast<size_t>(other)] != i;
        barrier.wait();
      }
    });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(all, kThreads);
  for (int thread = 0; thread < all; thread++) EXPECT_EQ(step[static_cast<size_t>(thread)], kSteps);
}

TEST(ParallelRegion, NestedLoopsRunOnOneThread) {
  std::atomic<int> inner{0};
  parallel_region(3, [&] {
    parallel_for(3, 6, [&](int64_t, int) {
      parallel_for(3, 5, [&](int64_t, int thread) { inner += thread == 0; });
      on_each_thread(2, [&](int thread, int count, Barrier& barrier) {
        barrier.wait();
        inner += thread == 0 && count == 1;
      });
    });
  });
  EXPECT_EQ(inner, 6 * 5 + 6);
}

TEST(ParallelRegion, ExceptionsReachTheCaller) {
  for (int threads : {1, 2, 3}) {
    EXPECT_THROW(parallel_region(threads, [] { throw std::runtime_error("the caller's"); }), std::runtime_error);
    auto fails = [&] {
      parallel_for(threads, 12, [](int64_t i, int) {
        if (i % 4 == 3) throw std::runtime_error("an iteration's");
      });
    };
    EXPECT_THROW(fails(), std::runtime_error);
    parallel_region(threads, [&] {
      EXPECT_THROW(fails(), std::runtime_error);
      Counts counts(9);
      counts.run(threads);
      counts.expect(1, threads);
    });
  }
}

TEST(ParallelRegion, SeveralCallersHaveOneEach) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; i++)
    callers.emplace_back([] {
      Counts counts(8);
      parallel_region(2, [&] {
        for (int n = 0; n < 300; n++) counts.run(2);
      });
      counts.expect(300, 2);
    });
  for (std::thread& t : callers) t.join();
}

}  // namespace
}  // namespace moka::kernel
