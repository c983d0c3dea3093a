// SPDX-License-Identifier: Apache-2.0
#include "devices/simulator/queue.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/copy.h"
#include "devices/simulator/faults.h"
#include "kernel/epilogue.h"

namespace moka::devices::simulator {

using namespace kernel;

namespace {

constexpr size_t kAlignment = 256;
constexpr int kLongestDelay = 50;  // microseconds

std::atomic<int> lost_after{-1};
std::atomic<size_t> most_bytes{SIZE_MAX}, used_bytes{0};

std::mutex hold_mutex;
std::condition_variable released;
bool holds = false;  // guarded by hold_mutex
std::atomic<int> running{0};

std::atomic<bool>& unified() {
  static std::atomic<bool> is = [] {
    const char* v = std::getenv("MOKA_SIMULATOR_UNIFIED");
    return v != nullptr && std::string_view(v) == "1";
  }();
  return is;
}

Error lost() { return fail(ErrorCode::device_lost, "the simulated device was lost"); }

std::atomic<double>& least_seconds() {
  static std::atomic<double> seconds = [] {
    const char* v = std::getenv("MOKA_SIMULATOR_MS");
    return v == nullptr ? 0 : std::strtod(v, nullptr) / 1000;
  }();
  return seconds;
}

/// Runs `work`, as long as the device takes.
template <class Work>
Status timed(const Work& work) {
  const double seconds = least_seconds();
  if (!(seconds > 0)) return work();
  static std::mutex busy;
  std::lock_guard lock(busy);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Status s = work();
  std::this_thread::sleep_until(end);
  return s;
}

/// Counts a submission. Error device_lost for the submission that loses the device and for all later ones.
Status count_submission() {
  for (int left = lost_after.load(); left >= 0;) {
    if (left == 0) return lost();
    if (lost_after.compare_exchange_weak(left, left - 1)) break;
  }
  return {};
}

class SimulatedMemory final : public Memory {
 public:
  size_t alignment() const override { return kAlignment; }
  Result<std::shared_ptr<Buffer>> allocate(size_t bytes) const override {
    if (used_bytes.load() + bytes > most_bytes.load())
      return fail(ErrorCode::out_of_budget, "no memory for a buffer of ", bytes, " bytes");
    try {
      return std::shared_ptr<Buffer>(std::make_shared<SimulatedBuffer>(bytes));
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::out_of_budget, "no memory for a buffer of ", bytes, " bytes");
    }
  }
  size_t share_alignment() const override { return unified() ? kAlignment : 0; }
  Result<std::shared_ptr<Buffer>> share(std::shared_ptr<std::byte> owner, size_t bytes) const override {
    return std::shared_ptr<Buffer>(std::make_shared<SimulatedBuffer>(std::move(owner), bytes));
  }
  Status write(Buffer& to, size_t offset, const void* from, size_t bytes) const override {
    if (offset > to.bytes() || bytes > to.bytes() - offset)
      return fail(ErrorCode::internal, bytes, " bytes at ", offset, " are written to a buffer of ", to.bytes());
    copy_bytes(static_cast<SimulatedBuffer&>(to).data() + offset, from, bytes);
    return {};
  }
  Status read(const Buffer& from, size_t offset, void* to, size_t bytes) const override {
    if (lost_after.load() == 0) return lost();
    if (offset > from.bytes() || bytes > from.bytes() - offset)
      return fail(ErrorCode::internal, bytes, " bytes at ", offset, " are read from a buffer of ", from.bytes());
    copy_bytes(to, static_cast<const SimulatedBuffer&>(from).data() + offset, bytes);
    return {};
  }
};

/// Runs jobs in order, each after a random delay.
class Worker {
 public:
  /// A forked child has the worker object but not its thread, and must leave it alone.
  static std::shared_ptr<Worker> make() {
    return {new Worker, [](Worker* w) {
              if (w->is_own()) delete w;
            }};
  }
  Worker() : thread_([this] { loop(); }) {}
  bool is_own() const { return process_ == getpid(); }
  ~Worker() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  void add(std::function<void()> job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
  }

 private:
  void loop() {
    std::minstd_rand random(std::random_device{}());
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % kLongestDelay));
      job();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stop_ = false;
  const pid_t process_ = getpid();
  std::thread thread_;
};

/// A value that crosses between host and device: the host's copy and the position in the device's memory.
struct Crossing {
  std::vector<std::byte> host;  ///< empty: the host reads and writes the value directly
  BufferView at;
  std::byte* data() { return host.empty() ? data_of(at) : host.data(); }
  const std::byte* data() const { return host.empty() ? data_of(at) : host.data(); }
};

class SimulatedSubmission final : public Submission {
 public:
  explicit SimulatedSubmission(std::shared_ptr<Worker> worker) : worker_(std::move(worker)) {}
  ~SimulatedSubmission() override { (void)wait(); }

  Status add(std::span<const BufferView> views, std::vector<Crossing>& to) {
    for (const BufferView& v : views)
      to.push_back({std::vector<std::byte>(unified() ? 0 : MOKA_TRY(storage_bytes(v.dtype, v.shape, v.layout))), v});
    return {};
  }
  std::byte* upload(size_t i) override { return uploads[i].data(); }
  const std::byte* download(size_t i) const override { return downloads[i].data(); }
  Status submit() override {
    if (!worker_->is_own()) return fail(ErrorCode::device_lost, "a queue of the process that this one was forked from");
    MOKA_TRY(count_submission());
    std::lock_guard lock(mutex_);
    running_ = true;
    running++;
    worker_->add([this] {
      {
        std::unique_lock hold(hold_mutex);
        released.wait(hold, [] { return !holds; });
      }
      Status s = timed([this] { return run(); });
      running--;
      std::lock_guard done(mutex_);
      status_ = std::move(s);
      running_ = false;
      done_.notify_all();
    });
    return {};
  }
  Status wait() override {
    if (!worker_->is_own()) return fail(ErrorCode::device_lost, "a queue of the process that this one was forked from");
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return !running_; });
    return std::exchange(status_, Status{});
  }

  std::vector<ShownCommand> commands() const override { return shown; }
  std::vector<CommandTime> times() override { return times_; }
  Status run_each(const std::function<Status(size_t, bool)>& look) override {
    look_ = &look;
    Status status = submit();
    if (status.ok()) status = wait();
    look_ = nullptr;
    return status;
  }

  std::vector<Crossing> uploads, downloads;
  SimulatedRecorder recorder;
  std::vector<ShownCommand> shown;  ///< empty: the region is not shown

 private:
  Status run() {
    for (const Crossing& u : uploads) copy_bytes(data_of(u.at), u.host.data(), u.host.size());
    times_.clear();
    for (size_t i = 0; i < recorder.work.size(); i++) {
      if (look_ != nullptr) MOKA_TRY((*look_)(i, false));
      const int64_t start = shown.empty() ? 0 : clock_nanoseconds();
      MOKA_TRY(recorder.work[i]());
      if (shown.empty()) continue;
      times_.push_back({start, clock_nanoseconds()});
      if (look_ != nullptr) MOKA_TRY((*look_)(i, true));
    }
    for (Crossing& d : downloads) copy_bytes(d.host.data(), data_of(d.at), d.host.size());
    return {};
  }
  std::shared_ptr<Worker> worker_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool running_ = false;
  Status status_;
  std::vector<CommandTime> times_;
  const std::function<Status(size_t, bool)>* look_ = nullptr;
};

/// A piece of work of a step, as a reader sees it.
ShownCommand shown_work(const RegionStep& step, uint32_t number) {
  ShownCommand out;
  out.kind = ShownCommand::Kind::function;
  out.steps = {number};
  out.code = step.choice->kernel;
  out.waits = true;
  const auto bind = [&](const BufferView& v, bool is_written) {
    const auto bytes = storage_bytes(v.dtype, v.shape, v.layout);
    if (v.buffer != nullptr && bytes.ok())
      out.buffers.push_back({{}, v.buffer, v.offset, *bytes, v.dtype, is_written, false});
  };
  for (const BufferView& v : step.in) bind(v, false);
  for (const BufferView& v : step.out) bind(v, true);
  return out;
}

class SimulatedQueue final : public Queue {
 public:
  Result<std::optional<TimestampFacts>> timestamps() override { return std::optional(clock_facts()); }
  Result<std::unique_ptr<Submission>> compile(const Region& region) override {
    auto s = std::make_unique<SimulatedSubmission>(worker_);
    MOKA_TRY(s->add(region.uploads, s->uploads));
    MOKA_TRY(s->add(region.downloads, s->downloads));
    for (uint32_t i = 0; i < region.steps.size(); i++) {
      const RegionStep& step = region.steps[i];
      MOKA_TRY(step.choice->record(s->recorder, {step.in, step.out, step.scratch, step.call}));
      if (!step.epilogue.empty())
        s->recorder.work.push_back([out = step.out[0], epilogue = step.epilogue]() -> Status {
          apply_epilogues(epilogue, {out.dtype, out.shape, data_of(out)});
          return {};
        });
      while (region.is_shown && s->shown.size() < s->recorder.work.size()) s->shown.push_back(shown_work(step, i));
    }
    return std::unique_ptr<Submission>(std::move(s));
  }

 private:
  std::shared_ptr<Worker> worker_ = Worker::make();
};

}  // namespace

SimulatedBuffer::SimulatedBuffer(size_t bytes)
    : Buffer(bytes), data_(new std::byte[bytes], std::default_delete<std::byte[]>()), is_counted_(true) {
  std::memset(data_.get(), 0xff, bytes);
  used_bytes += bytes;
}

SimulatedBuffer::~SimulatedBuffer() {
  if (is_counted_) used_bytes -= bytes();
}

void set_faults(const Faults& faults) {
  lost_after = faults.lost_after;
  most_bytes = faults.most_bytes;
  {
    std::lock_guard lock(hold_mutex);
    holds = faults.holds;
  }
  released.notify_all();
}

int count_running() { return running; }

void set_least_seconds(double seconds) { least_seconds() = seconds; }

void set_unified(bool is) { unified() = is; }

std::byte* data_of(const BufferView& v) { return static_cast<const SimulatedBuffer*>(v.buffer)->data() + v.offset; }

const Memory& memory() {
  static const SimulatedMemory m;
  return m;
}

std::unique_ptr<Queue> open_queue() { return std::make_unique<SimulatedQueue>(); }

}  // namespace moka::devices::simulator
