#include "kernel/team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernel/workers.h"

namespace moka::kernel {
namespace {

/// How often each part ran, and the largest number of a thread.
struct Counts {
  explicit Counts(int64_t parts) : of(static_cast<size_t>(parts)) {}
  void run(int threads) {
    share(threads, static_cast<int64_t>(of.size()), [&](int64_t part, int thread) {
      of[static_cast<size_t>(part)].fetch_add(1);
      for (int most = highest.load(); most < thread && !highest.compare_exchange_weak(most, thread);) continue;
    });
  }
  void expect(int times, int threads) const {
    for (size_t i = 0; i < of.size(); i++) ASSERT_EQ(of[i], times) << "part " << i;
    EXPECT_LT(highest, threads);
  }
  std::vector<std::atomic<int>> of;
  std::atomic<int> highest{0};
};

TEST(Team, EveryPartOnce) {
  for (int threads : {1, 2, 3, 7})
    for (int64_t parts : {0, 1, 2, 5, 64, 1000}) {
      Counts counts(parts);
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

/// Where thread 1 of a team may run.
cpu_set_t allowed_of_other() {
  cpu_set_t set;
  CPU_ZERO(&set);
  together(2, [&](int thread, int, Barrier&) {
    if (thread == 1) set = allowed_here();
  });
  return set;
}

/// A woken thread would else wait on the processor of the one that woke it.
TEST(Team, OthersKeepOffTheLeadersProcessor) {
  const cpu_set_t allowed = allowed_here();
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one processor only";
  int seen = 0;
  for (int i = 0; i < CPU_SETSIZE && seen < 4; i++) {
    if (!CPU_ISSET(i, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    // The leader moves there, and may move on, after which nothing is known.
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

TEST(Team, OthersKeepOffAfterACrowdToo) {
  const cpu_set_t allowed = allowed_here();
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one processor only";
  int seen = 0;
  for (int i = 0; i < 1000 && seen < 3; i++) {
    const int before = sched_getcpu();
    together(CPU_COUNT(&allowed) + 1, [](int, int, Barrier& barrier) { barrier.wait(); });
    cpu_set_t other = allowed_of_other();
    if (sched_getcpu() != before) continue;
    seen += !CPU_ISSET(before, &other);
  }
  EXPECT_EQ(seen, 3);
}

TEST(Team, OthersRunWhereTheyAreAskedTo) {
  std::thread([] {
    const cpu_set_t allowed = allowed_here();
    for (int i = 0; i < CPU_SETSIZE; i++) {
      if (!CPU_ISSET(i, &allowed)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(i, &one);
      help_from(std::array{i});
      const cpu_set_t other = allowed_of_other(), own = allowed_here();
      EXPECT_TRUE(CPU_EQUAL(&other, &one)) << "processor " << i;
      EXPECT_TRUE(CPU_EQUAL(&own, &allowed));
    }
    help_from({});
    cpu_set_t other = allowed_of_other();
    if (CPU_COUNT(&other) < CPU_COUNT(&allowed)) CPU_SET(sched_getcpu(), &other);
    EXPECT_GE(CPU_COUNT(&other), CPU_COUNT(&allowed) - 1);
  }).join();
}

TEST(Team, ThreadsThatAreBoundStayBound) {
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

/// Jobs one behind the other, where threads come to one that has ended.
TEST(Team, ManyJobsOfOneTeam) {
  constexpr int kTimes = 20000;
  Counts few(3), more(8), some(5);
  with_team(3, [&] {
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

TEST(Team, ResultsAreSeen) {
  constexpr int kParts = 16, kTimes = 2000;
  std::vector<int64_t> values(kParts);
  int64_t sum = 0;
  with_team(4, [&] {
    for (int i = 0; i < kTimes; i++) {
      share(4, kParts, [&](int64_t part, int) { values[static_cast<size_t>(part)] += part; });
      sum = std::accumulate(values.begin(), values.end(), int64_t{0});
    }
  });
  EXPECT_EQ(sum, int64_t{kTimes} * kParts * (kParts - 1) / 2);
}

TEST(Team, TogetherWaitsForAll) {
  constexpr int kThreads = 3, kSteps = 500;
  std::vector<int> step(kThreads);
  std::atomic<int> wrong{0}, of_all{0};
  with_team(kThreads, [&] {
    together(kThreads, [&](int thread, int of, Barrier& barrier) {
      of_all = of;
      for (int i = 1; i <= kSteps; i++) {
        step[static_cast<size_t>(thread)] = i;
        barrier.wait();
        for (int other = 0; other < of; other++) wrong += step[static_cast<size_t>(other)] != i;
        barrier.wait();
      }
    });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(of_all, kThreads);
  for (int thread = 0; thread < of_all; thread++) EXPECT_EQ(step[static_cast<size_t>(thread)], kSteps);
}

/// A part that shares work of its own does it alone.
TEST(Team, Nested) {
  std::atomic<int> inner{0};
  with_team(3, [&] {
    share(3, 6, [&](int64_t, int) {
      share(3, 5, [&](int64_t, int thread) { inner += thread == 0; });
      together(2, [&](int thread, int of, Barrier& barrier) {
        barrier.wait();
        inner += thread == 0 && of == 1;
      });
    });
  });
  EXPECT_EQ(inner, 6 * 5 + 6);
}

TEST(Team, ExceptionsReachTheCaller) {
  for (int threads : {1, 2, 3}) {
    EXPECT_THROW(with_team(threads, [] { throw std::runtime_error("the leader's"); }), std::runtime_error);
    auto fails = [&] {
      share(threads, 12, [](int64_t part, int) {
        if (part % 4 == 3) throw std::runtime_error("a part's");
      });
    };
    EXPECT_THROW(fails(), std::runtime_error);
    with_team(threads, [&] {
      EXPECT_THROW(fails(), std::runtime_error);
      Counts counts(9);
      counts.run(threads);
      counts.expect(1, threads);
    });
  }
}

/// Threads that are not of a team have one each.
TEST(Team, OfSeveralCallers) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; i++)
    callers.emplace_back([] {
      Counts counts(8);
      with_team(2, [&] {
        for (int n = 0; n < 300; n++) counts.run(2);
      });
      counts.expect(300, 2);
    });
  for (std::thread& t : callers) t.join();
}

}  // namespace
}  // namespace moka::kernel
