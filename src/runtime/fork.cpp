#include "runtime/fork.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace moka::runtime {

namespace {

thread_local bool lost_team = false;

/// A thread that runs one piece of work after another, for one caller. Lives until the process ends.
class Worker {
 public:
  Worker() {
    std::thread([this] { serve(); }).detach();
  }

  void run(const std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    work_ = &work;
    changed_.notify_all();
    changed_.wait(lock, [&] { return work_ == nullptr; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return work_ != nullptr; });
      (*work_)();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
};

/// Never freed: its thread may run until the process ends, and a forked child has only the memory of it.
Worker* worker = nullptr;

void in_child() {
  lost_team = true;
  worker = nullptr;
}

}  // namespace

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, in_child);
  (void)registered;
}

bool lost_its_team() { return lost_team; }

void run_on_new_team(const std::function<void()>& work) {
  // Only the thread that forked gets here.
  if (worker == nullptr) worker = new Worker;
  worker->run(work);
}

}  // namespace moka::runtime
