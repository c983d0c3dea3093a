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
  turns.take(&a);
  std::vector<std::thread> threads;
  const auto wait = [&](const void* model, char name) {
    threads.emplace_back([&, model, name] {
      turns.take(model);
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
        turns.take(&turns);
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

TEST(Admission, WaitEndsWhenOneEndsOrNoneRuns) {
  DeviceSessions sessions;
  EXPECT_FALSE(Admission(sessions).wait_for_end(sessions.count_ended()));
  sessions.started();
  const uint64_t seen = sessions.count_ended();
  std::thread ender([&] {
    std::this_thread::sleep_for(20ms);
    sessions.ended();
  });
  EXPECT_TRUE(Admission(sessions).wait_for_end(seen));
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
    admission.wait_for_turn();
    EXPECT_TRUE(admission.wait_for_end(seen));
    admission.wait_for_turn();
    note('1');
  });
  while (!sessions.is_anyone_waiting()) std::this_thread::yield();
  std::vector<std::thread> small;
  for (int t = 0; t < 3; t++)
    small.emplace_back([&] {
      Admission admission(sessions);
      admission.wait_for_turn();
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
