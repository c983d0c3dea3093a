// SPDX-License-Identifier: Apache-2.0
#include "runtime/admission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace moka::runtime {
namespace {

using namespace std::chrono_literals;

TEST(Turns, ModelsGoInTurnAndAModelInItsOrder) {
  Turns turns(1);
  const int a = 0, b = 0;
  std::mutex mutex;
  std::string order;
  EXPECT_TRUE(turns.take(&a).ok());
  std::vector<std::thread> threads;
  const auto wait = [&](const void* model, char name) {
    threads.emplace_back([&, model, name] {
      EXPECT_TRUE(turns.take(model).ok());
      {
        std::lock_guard lock(mutex);
        order += name;
      }
      turns.give_back();
    });
    // They arrive one by one.
    while (turns.count_waiting() < threads.size()) std::this_thread::yield();
  };
  for (char name : {'1', '2', '3', '4'}) wait(&a, name);
  wait(&b, 'b');
  turns.give_back();
  for (std::thread& t : threads) t.join();
  ASSERT_EQ(order.size(), 5u);
  // The other model does not wait for all four.
  EXPECT_LE(order.find('b'), 1u) << order;
  std::erase(order, 'b');
  EXPECT_EQ(order, "1234");
}

TEST(Turns, AsManyAsThereAre) {
  Turns turns(3);
  std::atomic<int> now{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&] {
      for (int n = 0; n < 50; n++) {
        EXPECT_TRUE(turns.take(&turns).ok());
        const int count = ++now;
        for (int seen = most; seen < count && !most.compare_exchange_weak(seen, count);) {
        }
        --now;
        turns.give_back();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_LE(most, 3);
}

TEST(Turns, AStopEndsTheWaiting) {
  Turns turns(1);
  const int a = 0, b = 0;
  EXPECT_TRUE(turns.take(&a).ok());
  std::stop_source source;
  const Stop by_request(source.get_token(), {}), by_time({}, Stop::Clock::now() + 5ms);
  EXPECT_EQ(turns.take(&b, &by_time).error().code(), ErrorCode::deadline_exceeded);
  std::thread asking([&] { source.request_stop(); });
  EXPECT_EQ(turns.take(&b, &by_request).error().code(), ErrorCode::cancelled);
  asking.join();
  EXPECT_EQ(turns.count_waiting(), 0u);
  turns.give_back();
  EXPECT_TRUE(turns.take(&b).ok());
}

TEST(Admission, WaitEndsWhenOneEndsOrNoneRuns) {
  DeviceSessions sessions;
  EXPECT_FALSE(*Admission(sessions).wait_for_end(sessions.count_ended(), nullptr));
  sessions.started();
  const uint64_t seen = sessions.count_ended();
  std::thread ender([&] {
    std::this_thread::sleep_for(20ms);
    sessions.ended();
  });
  const Stop stop({}, Stop::Clock::now());
  EXPECT_EQ(Admission(sessions).wait_for_end(seen, &stop).error().code(), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(*Admission(sessions).wait_for_end(seen, nullptr));
  ender.join();
  EXPECT_FALSE(sessions.is_anyone_waiting());
}

TEST(Admission, NewSessionsComeBehindThoseThatWait) {
  DeviceSessions sessions;
  sessions.started();
  std::mutex mutex;
  std::string order;
  const auto note = [&](char name) {
    std::lock_guard lock(mutex);
    order += name;
  };
  const uint64_t seen = sessions.count_ended();
  std::thread large([&] {
    Admission admission(sessions);
    EXPECT_TRUE(admission.wait_for_turn(nullptr).ok());
    EXPECT_TRUE(*admission.wait_for_end(seen, nullptr));
    EXPECT_TRUE(admission.wait_for_turn(nullptr).ok());
    note('1');
  });
  while (!sessions.is_anyone_waiting()) std::this_thread::yield();
  std::vector<std::thread> small;
  for (int t = 0; t < 3; t++)
    small.emplace_back([&] {
      Admission admission(sessions);
      EXPECT_TRUE(admission.wait_for_turn(nullptr).ok());
      note('2');
    });
  std::this_thread::sleep_for(20ms);
  sessions.ended();
  large.join();
  for (std::thread& t : small) t.join();
  EXPECT_EQ(order, "1222");
}

}  // namespace
}  // namespace moka::runtime
