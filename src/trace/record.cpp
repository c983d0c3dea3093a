// SPDX-License-Identifier: Apache-2.0
#include "trace/record.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace moka::trace {

std::atomic<int> state{kUnknown};

namespace {

/// The state that all threads share. Never destroyed, because threads may record while the process ends.
struct Shared {
  std::mutex mutex;
  std::vector<std::shared_ptr<Log>> logs;
  std::unordered_map<std::string, std::unique_ptr<const Label>> labels;
  std::deque<std::string> models{""}, devices{""};
  std::unordered_map<std::string, int64_t> model_names;
  std::atomic<int64_t> counts[8]{};
};
Shared& shared() {
  static auto& all = *new Shared;
  return all;
}

struct Thread {
  std::shared_ptr<Log> log;
  ModelId model = 0;
  std::unordered_map<std::string, const Label*> labels;
  std::string key;
  ~Thread() {
    if (log) log->has_ended.store(true);
  }
};
thread_local Thread thread;

Log& log() {
  if (!thread.log) {
    auto made = std::make_shared<Log>();
    made->thread = static_cast<int64_t>(syscall(SYS_gettid));
    char name[32] = {};
    if (pthread_getname_np(pthread_self(), name, sizeof name) == 0) made->name = name;
    const std::lock_guard lock(shared().mutex);
    shared().logs.push_back(made);
    thread.log = std::move(made);
  }
  return *thread.log;
}

}  // namespace

Log::Log() : head_(new Chunk), tail_(head_) {}

Log::~Log() {
  while (tail_ != nullptr) {
    Chunk* next = tail_->next.load();
    delete tail_;
    tail_ = next;
  }
}

void Log::push(const Event& event) {
  size_t n = head_->filled.load(std::memory_order_relaxed);
  if (n == kChunk) {
    if (chunks_.load(std::memory_order_relaxed) >= kMostChunks) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    auto* next = new Chunk;
    chunks_.fetch_add(1, std::memory_order_relaxed);
    head_->next.store(next, std::memory_order_release);
    head_ = next;
    n = 0;
  }
  head_->events[n] = event;
  head_->filled.store(n + 1, std::memory_order_release);
}

void each_log(const std::function<void(Log&)>& f) {
  std::vector<std::shared_ptr<Log>> logs;
  {
    const std::lock_guard lock(shared().mutex);
    logs = shared().logs;
  }
  for (const auto& l : logs) {
    const bool has_ended = l->has_ended.load();
    f(*l);
    if (!has_ended) continue;
    const std::lock_guard lock(shared().mutex);
    std::erase(shared().logs, l);
  }
}

std::string model_name(ModelId model) {
  const std::lock_guard lock(shared().mutex);
  return model < shared().models.size() ? shared().models[model] : std::string();
}

std::string device_name(DeviceId device) {
  const std::lock_guard lock(shared().mutex);
  return device < shared().devices.size() ? shared().devices[device] : std::string();
}

void restart_counts() { shared().counts[static_cast<size_t>(Counter::copied)].store(0); }

void prepare_fork() { shared().mutex.lock(); }
void resume() { shared().mutex.unlock(); }
void forget_all() {
  shared().logs.clear();
  for (auto& n : shared().counts) n.store(0);
  thread.log.reset();
  shared().mutex.unlock();
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ModelId add_model(std::string_view name) {
  const std::lock_guard lock(shared().mutex);
  auto& all = shared().models;
  const int64_t before = shared().model_names[std::string(name)]++;
  all.push_back(before == 0 ? std::string(name) : cat(name, " (", before + 1, ")"));
  return static_cast<ModelId>(all.size() - 1);
}

DeviceId add_device(std::string_view name) {
  const std::lock_guard lock(shared().mutex);
  auto& all = shared().devices;
  for (size_t i = 1; i < all.size(); i++)
    if (all[i] == name) return static_cast<DeviceId>(i);
  all.emplace_back(name);
  return static_cast<DeviceId>(all.size() - 1);
}

const Label* label(std::string_view name, std::string_view kind, std::initializer_list<Argument> arguments) {
  std::string& key = thread.key;
  key.clear();
  const auto add = [&key](std::string_view text) {
    const size_t size = text.size();
    key.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
  };
  add(name);
  add(kind);
  for (const Argument& a : arguments) {
    add(a.name);
    if (a.is_number)
      key.append("#").append(reinterpret_cast<const char*>(&a.number), sizeof a.number);
    else
      add(a.text);
  }
  if (const auto it = thread.labels.find(key); it != thread.labels.end()) return it->second;
  const std::lock_guard lock(shared().mutex);
  auto& slot = shared().labels[key];
  if (slot == nullptr) {
    auto made = std::make_unique<Label>();
    made->name = name;
    made->kind = kind;
    for (const Argument& a : arguments) {
      if (a.is_number)
        made->numbers.emplace_back(a.name, a.number);
      else if (!a.text.empty())
        made->texts.emplace_back(a.name, a.text);
    }
    slot = std::move(made);
  }
  thread.labels.emplace(key, slot.get());
  return slot.get();
}

Use::Use(ModelId model) : before_(std::exchange(thread.model, model)) {}
Use::~Use() { thread.model = before_; }
ModelId current_model() { return thread.model; }

Span::Span(Lane lane, std::string_view name) : lane_(lane), is_on_(trace::is_on()) {
  if (is_on_) begin(lane, label(name, name), now());
}

void begin(Lane lane, const Label* label, int64_t at) {
  log().push({at, 0, label, thread.model, 0, Event::Kind::begin, static_cast<uint8_t>(lane)});
}

void end(Lane lane, int64_t at) {
  log().push({at, 0, nullptr, thread.model, 0, Event::Kind::end, static_cast<uint8_t>(lane)});
}

void slice(Lane lane, const Label* label, int64_t from, int64_t to, DeviceId device) {
  log().push({from, to, label, thread.model, device, Event::Kind::slice, static_cast<uint8_t>(lane)});
}

void counter(Counter counter, int64_t value) {
  log().push({now(), value, nullptr, 0, 0, Event::Kind::counter, static_cast<uint8_t>(counter)});
}

void count(Counter counter, int64_t change) {
  const int64_t value = shared().counts[static_cast<size_t>(counter)].fetch_add(change) + change;
  trace::counter(counter, value);
}

}  // namespace moka::trace
