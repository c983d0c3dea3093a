// SPDX-License-Identifier: Apache-2.0
#include "runtime/sessions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "base/processors.h"

/// Sessions of changing sizes use at most the memory of one largest session per processor.
namespace moka::runtime {
namespace {

constexpr size_t kSmallest = 1000, kLargest = 64000;

std::shared_ptr<const plan::Plan> plan_of(size_t bytes) {
  auto plan = std::make_shared<plan::Plan>();
  plan->memory.arena_bytes = bytes;
  return plan;
}

/// The session that a prediction would use: an idle one of the plan, or a new one with the memory that the plan needs.
std::unique_ptr<Session> session_of(SessionPool& pool, const std::shared_ptr<const plan::Plan>& plan) {
  auto session = std::move(*pool.take(*plan));
  if (session == nullptr) {
    session = std::make_unique<Session>(plan, 1);
    session->staging[0].resize(plan->memory.arena_bytes);
  }
  return session;
}

void predict(SessionPool& pool, int threads, int rounds, std::atomic<size_t>& most) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; t++)
    all.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::uniform_int_distribution<size_t> sizes(kSmallest, kLargest);
      for (int n = 0; n < rounds; n++) {
        auto session = session_of(pool, plan_of(sizes(random)));
        for (size_t now = pool.bytes(), seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        pool.give_back(std::move(session));
      }
    });
  for (std::thread& t : all) t.join();
}

TEST(Sessions, OfEightThreadsWithChangingShapesTakeWhatProcessorsNeed) {
  SessionPool pool(1, 8);
  std::atomic<size_t> most = 0;
  predict(pool, 8, 300, most);
  EXPECT_GE(most, kSmallest);
  EXPECT_LE(most, static_cast<size_t>(processors()) * kLargest);
  EXPECT_LE(pool.bytes(), kLargest) << "once nothing runs, one is kept";
}

TEST(Sessions, TakeTheBytesThatAreAllowed) {
  constexpr size_t kAllowed = 3 * kLargest;
  SessionPool pool(kAllowed, 100);
  std::atomic<size_t> most = 0;
  predict(pool, 1, 300, most);
  EXPECT_GT(most, kLargest) << "idle ones are kept while there is room";
  EXPECT_LE(most, kAllowed);
  EXPECT_LE(pool.bytes(), kAllowed);
  EXPECT_TRUE(pool.drop_idle());
  EXPECT_EQ(pool.bytes(), 0u);
}

}  // namespace
}  // namespace moka::runtime
