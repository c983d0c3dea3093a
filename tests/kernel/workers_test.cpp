#include "kernel/workers.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "base/processors.h"

namespace moka::kernel {
namespace {

TEST(Workers, EachIsCalledOnce) {
  for (int threads : {2, 3, 7}) {
    std::array<std::atomic<int>, 8> calls{};
    std::atomic<int> all{0};
    const auto count = [&](int number) {
      calls[static_cast<size_t>(number)]++;
      all++;
    };
    const FunctionRef<void(int)> work(count);
    Crew crew(threads);
    ASSERT_EQ(crew.threads(), threads);
    crew.start(work);
    while (all < threads - 1) std::this_thread::yield();
    for (int i = 0; i < 8; i++) EXPECT_EQ(calls[static_cast<size_t>(i)], i > 0 && i < threads ? 1 : 0) << i;
  }
}

/// Those that have not begun when a crew ends never do, and nobody waits for them.
TEST(Workers, BeginInTimeOrNotAtAll) {
  for (int i = 0; i < 5000; i++) {
    std::atomic<bool> ended{false}, late{false};
    const auto look = [&](int) { late = late || ended; };
    const FunctionRef<void(int)> work(look);
    {
      Crew crew(3);
      crew.start(work);
    }
    ended = true;
    ASSERT_FALSE(late);
  }
}

TEST(Workers, CrewsTogetherHaveAsManyThreadsAsProcessors) {
  const int all = processors();
  const Crew first(all);
  EXPECT_EQ(first.threads(), all);
  EXPECT_FALSE(crowded());
  std::thread([&] {
    const Crew second(all);
    EXPECT_EQ(second.threads(), 1);
    EXPECT_TRUE(crowded());
    const Crew large(all + 3);
    EXPECT_EQ(large.threads(), 2) << "one that asks for more has what is left of that";
  }).join();
  EXPECT_FALSE(crowded());
}

TEST(Workers, AreUsedAgain) {
  std::set<std::thread::id> seen;
  for (int i = 0; i < 100; i++) {
    std::atomic<bool> done{false};
    const auto look = [&](int) {
      seen.insert(std::this_thread::get_id());
      done = true;
    };
    const FunctionRef<void(int)> work(look);
    Crew crew(2);
    crew.start(work);
    while (!done) std::this_thread::yield();
  }
  EXPECT_EQ(seen.size(), 1u);
}

#if defined(__linux__)
bool sleeps(const std::string& thread) {
  std::ifstream file("/proc/self/task/" + thread + "/stat");
  std::string id, name, state;
  file >> id >> name >> state;
  return state == "S";
}

TEST(Workers, SleepWhenNobodyWantsThem) {
  std::string worker;
  {
    std::atomic<bool> done{false};
    const auto note = [&](int) {
      worker = std::to_string(gettid());
      done = true;
    };
    const FunctionRef<void(int)> work(note);
    Crew crew(2);
    crew.start(work);
    while (!done) std::this_thread::yield();
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!sleeps(worker) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_TRUE(sleeps(worker));
}
#endif

TEST(Workers, AForkedChildHasItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  auto sum = [] {
    std::atomic<int64_t> total{0};
    share(3, 1000, [&](int64_t part, int) { total += part; });
    return total.load();
  };
  ASSERT_EQ(sum(), 499500);
  const Crew lent(processors());  // which the child has no thread of
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool right = false;
    std::thread([&] { right = sum() == 499500 && Crew(2).threads() == 2; }).join();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace moka::kernel
