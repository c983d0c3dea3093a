// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trace/trace.h"

/// Passes events from the threads that record them to the thread that writes the trace.
namespace moka::trace {

struct Label {
  std::string name, kind;
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, int64_t>> numbers;
};

struct Event {
  enum class Kind : uint8_t { begin, end, slice, counter };
  int64_t from = 0, to = 0;  ///< steady clock; `to` of slices, the value of counters
  const Label* label = nullptr;
  ModelId model = 0;
  DeviceId device = 0;
  Kind kind = Kind::begin;
  uint8_t lane = 0;  ///< a Lane or a Counter
};

/// Where events come from.
struct Origin {
  int64_t thread = 0;  ///< the system's thread ID
  std::string name;
};

/// The events of one thread, which it writes and the trace's thread reads. Grows by chunks. If the reader falls far
/// behind, events are dropped and counted.
class Log : public Origin {
 public:
  Log();
  ~Log();
  Log(const Log&) = delete;
  void push(const Event& event);
  /// Calls f(event) for each event that was pushed so far, and removes it. Only one thread may call this at a time.
  template <class F>
  void drain(F&& f) {
    for (;;) {
      const size_t filled = tail_->filled.load(std::memory_order_acquire);
      while (read_ < filled) f(tail_->events[read_++]);
      if (read_ < kChunk) return;
      Chunk* next = tail_->next.load(std::memory_order_acquire);
      if (next == nullptr) return;
      delete tail_;
      tail_ = next;
      read_ = 0;
      chunks_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  /// How many were dropped since the last call. Only one thread may call this at a time.
  uint64_t take_dropped() { return dropped() - std::exchange(told_, dropped()); }

  std::atomic<bool> has_ended{false};

 private:
  static constexpr size_t kChunk = 1024, kMostChunks = 512;
  struct Chunk {
    std::array<Event, kChunk> events;
    std::atomic<size_t> filled{0};
    std::atomic<Chunk*> next{nullptr};
  };
  Chunk* head_;
  Chunk* tail_;
  size_t read_ = 0;
  std::atomic<size_t> chunks_{1};
  std::atomic<uint64_t> dropped_{0};
  uint64_t told_ = 0;
};

/// Calls f(log) for the log of each thread that has recorded; logs of threads that have ended go after it.
void each_log(const std::function<void(Log&)>& f);
std::string model_name(ModelId model);
std::string device_name(DeviceId device);
/// Counters that only rise begin at 0 in each trace; the others say what is going on.
void restart_counts();
/// Call prepare_fork() before a fork, resume() after it in the parent and forget_all() in the child, which drops what
/// the parent recorded.
void prepare_fork();
void resume();
void forget_all();

}  // namespace moka::trace
