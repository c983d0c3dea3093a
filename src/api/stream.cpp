// SPDX-License-Identifier: Apache-2.0
#include "moka/stream.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"

namespace moka {

struct Stream::Impl {
  struct Item {
    Features inputs, outputs;
    std::exception_ptr failure;
    bool is_done = false;
  };

  Impl(Model model, StreamOptions options, int threads) : model_(std::move(model)), options_(std::move(options)) {
    try {
      for (int t = 0; t < threads; t++) threads_.emplace_back([this] { loop(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Impl() { stop(); }

  void push(Features inputs) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return unfinished_ < options_.ahead; });
    unfinished_++;
    items_.push_back(std::make_shared<Item>(Item{std::move(inputs), {}, nullptr, false}));
    queue_.push_back(items_.back());
    waiting_.notify_one();
  }

  Features pop() {
    std::unique_lock lock(mutex_);
    if (items_.empty())
      throw Exception(ErrorKind::invalid_argument, "stream: pop without an input whose result was not popped");
    const std::shared_ptr<Item> item = std::move(items_.front());
    items_.pop_front();
    const size_t number = popped_++;
    done_.wait(lock, [&] { return item->is_done; });
    lock.unlock();
    try {
      if (item->failure != nullptr) std::rethrow_exception(item->failure);
    } catch (const Exception& e) {
      throw Exception(e.kind(), cat("stream item ", number, ": ", e.what()));
    }
    return std::move(item->outputs);
  }

  size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    waiting_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  void loop() {
    for (;;) {
      std::shared_ptr<Item> item;
      {
        std::unique_lock lock(mutex_);
        waiting_.wait(lock, [&] { return stop_ || !queue_.empty(); });
        if (stop_) return;
        item = std::move(queue_.front());
        queue_.pop_front();
      }
      try {
        model_.predict(item->inputs, item->outputs, options_.prediction);
        item->inputs = {};
      } catch (...) {
        item->failure = std::current_exception();
      }
      {
        std::lock_guard lock(mutex_);
        item->is_done = true;
        unfinished_--;
      }
      done_.notify_all();
    }
  }

  const Model model_;
  const StreamOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable waiting_, done_;
  std::deque<std::shared_ptr<Item>> items_;  ///< not popped yet
  std::deque<std::shared_ptr<Item>> queue_;  ///< not started yet
  size_t unfinished_ = 0, popped_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

Stream::Stream(Model model, StreamOptions options) {
  if (options.ahead == 0) throw Exception(ErrorKind::invalid_argument, "stream: ahead: expected at least 1, got 0");
  constexpr int most = 1024;
  if (options.at_once < 1 || options.at_once > most)
    throw Exception(ErrorKind::invalid_argument,
                    cat("stream: at_once: expected a number from 1 to ", most, ", got ", options.at_once));
  const int threads = options.prediction.state != nullptr ? 1 : options.at_once;
  impl_ = std::make_unique<Impl>(std::move(model), std::move(options), threads);
}

Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

void Stream::push(Features inputs) { impl_->push(std::move(inputs)); }
Features Stream::pop() { return impl_->pop(); }
size_t Stream::size() const { return impl_->size(); }

}  // namespace moka
