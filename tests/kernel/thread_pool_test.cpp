// SPDX-License-Identifier: Apache-2.0
#include "kernel/thread_pool.h"

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

TEST(ThreadPool, CallsEachWorkerOnce) {
  for (int threads : {2, 3, 7}) {
    std::array<std::atomic<int>, 8> calls{};
    std::atomic<int> all{0};
    const auto count = [&](int number) {
      calls[static_cast<size_t>(number)]++;
      all++;
    };
    const FunctionRef<void(int)> work(count);
    PoolWorkers workers(threads);
    ASSERT_EQ(workers.threads(), threads);
    workers.start(work);
    while (all < threads - 1) std::this_thread::yield();
    for (int i = 0; i < 8; i++) EXPECT_EQ(calls[static_cast<size_t>(i)], i > 0 && i < threads ? 1 : 0) << i;
  }
}

/// If a caller returns a worker that has not begun, the worker never begins, and the caller does not wait for it.
TEST(ThreadPool, WorkersBeginInTimeOrNotAtAll) {
  for (int i = 0; i < 5000; i++) {
    std::atomic<bool> ended{false}, late{false};
    const auto look = [&](int) { late = late || ended; };
    const FunctionRef<void(int)> work(look);
    {
      PoolWorkers workers(3);
      workers.start(work);
    }
    ended = true;
    ASSERT_FALSE(late);
  }
}

TEST(ThreadPool, CallersShareTheProcessors) {
  const int all = processors();
  const PoolWorkers first(all);
  EXPECT_EQ(first.threads(), all);
  EXPECT_FALSE(oversubscribed());
  std::thread([&] {
    const PoolWorkers second(all);
    EXPECT_EQ(second.threads(), 1);
    EXPECT_TRUE(oversubscribed());
    const PoolWorkers large(all + 3);
    EXPECT_EQ(large.threads(), 2) << "a caller that asks for more gets what is left of its own number";
  }).join();
  EXPECT_FALSE(oversubscribed());
}

TEST(ThreadPool, UsesWorkersAgain) {
  std::set<std::thread::id> seen;
  for (int i = 0; i < 100; i++) {
    std::atomic<bool> done{false};
    const auto look = [&](int) {
      seen.insert(std::this_thread::get_id());
      done = true;
    };
    const FunctionRef<void(int)> work(look);
    PoolWorkers workers(2);
    workers.start(work);
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

TEST(ThreadPool, IdleWorkersSleep) {
  std::string worker;
  {
    std::atomic<bool> done{false};
    const auto note = [&](int) {
      worker = std::to_string(gettid());
      done = true;
    };
    const FunctionRef<void(int)> work(note);
    PoolWorkers workers(2);
    workers.start(work);
    while (!done) std::this_thread::yield();
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!sleeps(worker) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_TRUE(sleeps(worker));
}
#endif

TEST(ThreadPool, AForkedChildHasItsOwnWorkers) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  auto sum = [] {
    std::atomic<int64_t> total{0};
    parallel_for(3, 1000, [&](int64_t i, int) { total += i; });
    return total.load();
  };
  ASSERT_EQ(sum(), 499500);
  const PoolWorkers taken(processors());  // their threads do not exist in the child
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool right = false;
    std::thread([&] { right = sum() == 499500 && PoolWorkers(2).threads() == 2; }).join();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace moka::kernel
