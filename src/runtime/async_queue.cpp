// SPDX-License-Identifier: Apache-2.0
#include "runtime/async_queue.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/processors.h"

namespace moka::runtime {

namespace {
constexpr auto kIdleTime = std::chrono::milliseconds(200);  // after which a thread ends
constexpr auto kLookTime = std::chrono::milliseconds(1);    // between two looks at the stops of work that waits
}  // namespace

struct AsyncQueue::Impl {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<Work> waiting;
  std::vector<const void*> keys;  ///< of running work
  std::map<std::thread::id, std::thread> threads;
  std::vector<std::thread> ended;  ///< to be joined
  size_t idle = 0;
  bool is_watched = false, is_ending = false;

  /// The first work that may run now, with its key taken; nullopt: there is none.
  std::optional<Work> next() {
    const auto it = std::find_if(waiting.begin(), waiting.end(), [&](const Work& w) {
      return w.key == nullptr || std::find(keys.begin(), keys.end(), w.key) == keys.end();
    });
    if (it == waiting.end()) return std::nullopt;
    if (it->key != nullptr) keys.push_back(it->key);
    std::optional<Work> out = std::move(*it);
    waiting.erase(it);
    return out;
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      std::optional<Work> one = next();
      if (!one) {
        if (is_ending) break;
        idle++;
        const bool is_idle = changed.wait_for(lock, kIdleTime) == std::cv_status::timeout;
        idle--;
        if (is_idle && waiting.empty()) break;
        continue;
      }
      const void* key = one->key;
      lock.unlock();
      one->run(one->stop.check());
      one.reset();
      lock.lock();
      if (key != nullptr) {
        keys.erase(std::find(keys.begin(), keys.end(), key));
        changed.notify_all();
      }
    }
    end();
  }

  /// Ends work that waits when its stop says so, for as long as some that can be stopped is waiting.
  void watch() {
    std::unique_lock lock(mutex);
    for (;;) {
      std::list<Work> stopped;
      bool is_any = false;
      for (auto it = waiting.begin(); it != waiting.end();) {
        const auto at = it++;
        if (!at->stop.is_possible()) continue;
        is_any = true;
        if (!at->stop.check().ok()) stopped.splice(stopped.end(), waiting, at);
      }
      if (!is_any) break;
      if (!stopped.empty()) {
        lock.unlock();
        for (Work& w : stopped) w.run(w.stop.check());
        stopped.clear();
        lock.lock();
        continue;
      }
      changed.wait_for(lock, kLookTime);
    }
    is_watched = false;
    end();
  }

  void end() {
    const auto self = threads.find(std::this_thread::get_id());
    ended.push_back(std::move(self->second));
    threads.erase(self);
    changed.notify_all();
  }

  template <class F>
  void start(F run) {
    std::thread thread(std::move(run));
    const std::thread::id id = thread.get_id();
    threads.emplace(id, std::move(thread));
  }
};

AsyncQueue::AsyncQueue(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AsyncQueue::~AsyncQueue() {
  std::list<Work> dropped;
  std::unique_lock lock(impl_->mutex);
  impl_->is_ending = true;
  dropped.splice(dropped.end(), impl_->waiting);
  impl_->changed.notify_all();
  lock.unlock();
  for (Work& w : dropped) w.run(fail(ErrorCode::cancelled, "the process ends"));
  lock.lock();
  impl_->changed.wait(lock, [&] { return impl_->threads.empty(); });
  for (std::thread& t : impl_->ended) t.join();
}

AsyncQueue& AsyncQueue::shared() {
  static AsyncQueue queue(std::make_unique<Impl>());
  // The threads do not exist in a child, which leaves what they used alone.
  [[maybe_unused]] static const int registered =
      pthread_atfork([] { queue.impl_->mutex.lock(); }, [] { queue.impl_->mutex.unlock(); },
                     [] {
                       (void)queue.impl_.release();
                       queue.impl_ = std::make_unique<Impl>();
                     });
  return queue;
}

void AsyncQueue::push(Work work) {
  Impl& q = *impl_;
  Status refused;
  std::vector<std::thread> ended;
  {
    std::unique_lock lock(q.mutex);
    ended.swap(q.ended);
    if (q.is_ending) {
      refused = fail(ErrorCode::cancelled, "the process ends");
    } else {
      const bool is_stoppable = work.stop.is_possible();
      q.waiting.push_back(std::move(work));
      const auto most = static_cast<size_t>(std::max(2, processors()));
      try {
        if (q.idle < q.waiting.size() && q.threads.size() - (q.is_watched ? 1 : 0) < most) q.start([&q] { q.work(); });
        if (is_stoppable && !q.is_watched) {
          q.start([&q] { q.watch(); });
          q.is_watched = true;
        }
      } catch (const std::system_error&) {
        // The threads that there are do it later.
        if (q.threads.empty()) {
          work = std::move(q.waiting.back());
          q.waiting.pop_back();
          refused = fail(ErrorCode::out_of_budget, "the system starts no thread");
        }
      }
      q.changed.notify_all();  // the thread that watches waits for the same
    }
  }
  for (std::thread& t : ended) t.join();
  if (!refused.ok()) work.run(std::move(refused));
}

}  // namespace moka::runtime
