// SPDX-License-Identifier: Apache-2.0
#include "runtime/measure.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/layout.h"
#include "plan/plan.h"
#include "runtime/launch.h"
#include "runtime/waited.h"

namespace moka::runtime {

namespace {

using kernel::KernelChoice;
using kernel::Layout;
using kernel::MatchCall;

/// Seconds to measure all candidates of a shape, without those in which other work had the processors. If other work
/// disturbs it, the measurement may take kPatience times as long.
constexpr double kSeconds = 30e-3;
constexpr int kPatience = 10;
/// A candidate is done after kFewest to kMost undisturbed runs, once its two shortest times are near each other: they
/// differ by at most the factor kNear or by kNearSeconds.
constexpr int kFewest = 3, kMost = 2000;
constexpr double kNear = 1.05, kNearSeconds = 0.2e-6;
/// A candidate that takes this many times as long as the fastest is not run again.
constexpr double kHopeless = 1.5;
/// A run of at most this many seconds can happen between two switches to other threads of a busy processor.
constexpr double kBetweenSwitches = 1e-3;
constexpr size_t kLine = 64;

/// The processor time of one thread does not count the work of others.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// How often the calling thread has left its processor.
int64_t switches() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw + used.ru_nivcsw;
}

/// Uniform numbers in +-[1/8, 1). Neither they nor products of two of them are denormal.
void fill_random(float* to, int64_t n) {
  uint64_t state = 0x9e3779b97f4a7c15;
  for (int64_t i = 0; i < n; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto draw = static_cast<float>(state >> 40) / static_cast<float>(1 << 24);
    to[i] = (0.125f + 0.875f * draw) * ((state >> 39 & 1) != 0 ? 1.0f : -1.0f);
  }
}

std::span<const std::byte> bytes_of(const ir::TensorView& v, size_t bytes) {
  return {static_cast<const std::byte*>(v.data), bytes};
}

/// Removes memory from the caches of all cores.
void evict(std::span<const std::byte> memory) {
#if defined(__x86_64__)
  for (size_t i = 0; i < memory.size(); i += kLine) _mm_clflush(memory.data() + i);
  _mm_mfence();
#else
  (void)memory;
#endif
}

/// Brings data into the caches, where an earlier operation would have left it.
void touch(std::span<const std::byte> memory) {
  std::byte all{};
  for (size_t i = 0; i < memory.size(); i += kLine) all |= memory[i];
  volatile std::byte kept = all;
  (void)kept;
}

/// Memory for measurements, one after the other. It is on huge pages like the memory of a plan: small pages lie where
/// they happened to be free, which changes the times of kernels from process to process.
class Pages {
 public:
  /// Forgets what was taken.
  void reuse() { used_ = current_ = 0; }
  void free() {
    chunks_.clear();
    reuse();
  }
  /// Aligned to a cache line. Null when memory is exhausted.
  std::byte* take(size_t bytes) {
    constexpr size_t kLeast = size_t{32} << 20;
    if (bytes > SIZE_MAX / 2) return nullptr;
    bytes = (bytes + 2 * kLine - 1) / kLine * kLine;
    for (; current_ < chunks_.size(); current_++, used_ = 0) {
      if (chunks_[current_].bytes - used_ < bytes) continue;
      used_ += bytes;
      return chunks_[current_].data.get() + used_ - bytes;
    }
    const size_t size = std::max(bytes, kLeast);
    auto data = allocate_large(size);
    if (data == nullptr) return nullptr;
    chunks_.push_back({std::move(data), size});
    used_ = bytes;
    return chunks_.back().data.get();
  }

 private:
  struct Chunk {
    std::shared_ptr<std::byte> data;
    size_t bytes;
  };
  std::vector<Chunk> chunks_;
  size_t current_ = 0, used_ = 0;
};

/// The memory of one measurement.
class Memory {
 public:
  Memory(Pages& pages, size_t limit) : pages_(pages), budget_(limit) { pages.reuse(); }
  Memory(const Memory&) = delete;

  /// Zeroed memory that is aligned to a cache line.
  Result<std::byte*> take(size_t bytes) {
    MOKA_TRY(budget_.take(bytes, "timing a kernel"));
    std::byte* p = pages_.take(bytes);
    if (p == nullptr) return fail(ErrorCode::out_of_budget, "no memory for ", bytes, " bytes to time a kernel with");
    std::memset(p, 0, bytes);
    return p;
  }

 private:
  Pages& pages_;
  MemoryBudget budget_;
};

/// The inputs of all candidates, in the layouts that the operations before produce.
struct Inputs final {
  const MatchCall& call;
  Memory& memory;
  std::vector<ir::TensorView> plain;    ///< row-major
  std::vector<ir::TensorView> arrived;  ///< in the arriving layout; without constants

  Result<ir::TensorView> value(size_t arg) {
    if (plain[arg].data != nullptr) return plain[arg];
    const ir::Arg& a = call.call.all_args()[arg];
    if (a.value != nullptr && !ir::is_float(a.value->dtype)) return *a.value;
    ir::TensorView v;
    v.dtype = a.type->dtype();
    v.shape = a.type->shape();
    v.data = MOKA_TRY(memory.take(MOKA_TRY(ir::storage_bytes(v.dtype, v.shape))));
    if (v.dtype == ir::DType::fp32) fill_random(v.as<float>(), v.count());
    return plain[arg] = v;
  }

  Result<ir::TensorView> in_layout(size_t arg, Layout layout, bool filled) {
    ir::TensorView v = MOKA_TRY(value(arg));
    if (layout.is_row_major()) return v;
    const ir::TensorView from = v;
    v.data = MOKA_TRY(memory.take(MOKA_TRY(kernel::storage_bytes(v.dtype, v.shape, layout))));
    if (filled) launch_conversion(from, {}, v, layout, 1);
    return v;
  }

  Status make() {
    const auto args = call.call.all_args();
    plain.resize(args.size());
    arrived.resize(args.size());
    for (size_t i = 0; i < args.size(); i++)
      if (!call.constant_args[i]) arrived[i] = MOKA_TRY(in_layout(i, call.layouts[i], true));
    return {};
  }
};

struct Conversion {
  ir::TensorView in, out;
  Layout from, to;
};

/// One candidate, ready to run.
class Prepared final : public kernel::PrepareContext {
 public:
  Prepared(plan::Candidate candidate, Inputs& inputs, Memory& memory)
      : choice_(std::move(candidate.choice)), threads_(candidate.threads), inputs_(inputs), memory_(memory) {}

  Status make(std::span<const Layout> home, int threads) {
    const MatchCall& call = inputs_.call;
    plan_threads_ = threads;
    if (choice_->prepare) MOKA_TRY(choice_->prepare(*this));
    const auto args = call.call.all_args();
    for (size_t i = 0; i < args.size(); i++) in_.push_back(MOKA_TRY(input(i)));
    for (size_t i = 0; i < call.outputs.size(); i++) {
      const ir::Type& t = call.outputs[i];
      const Layout mine = i < choice_->out.size() ? choice_->out[i] : Layout{};
      const Layout theirs = i < home.size() ? home[i] : Layout{};
      ir::TensorView v;
      v.dtype = t.dtype();
      v.shape = t.shape();
      if (i == 0 && choice_->in_place >= 0)
        v.data = in_[static_cast<size_t>(choice_->in_place)].data;
      else
        v.data = MOKA_TRY(memory_.take(MOKA_TRY(kernel::storage_bytes(v.dtype, v.shape, mine))));
      out_.push_back(v);
      if (mine == theirs) continue;
      Conversion c{v, v, mine, theirs};
      c.out.data = MOKA_TRY(memory_.take(MOKA_TRY(kernel::storage_bytes(v.dtype, v.shape, theirs))));
      after_.push_back(c);
    }
    if (choice_->scratch > 0) scratch_ = MOKA_TRY(memory_.take(choice_->scratch));
    thread_step_ = (choice_->thread_scratch + 63) / 64 * 64;
    if (thread_step_ > 0)
      threads_scratch_ = MOKA_TRY(memory_.take(thread_step_ * static_cast<size_t>(std::max(1, threads_))));
    return {};
  }

  /// Seconds of one run; of one thread's own work where the plan has one thread. `cold`: weights are in no cache.
  Result<double> run(bool cold) {
    const auto now = [this] { return plan_threads_ == 1 ? thread_seconds() : seconds_since({}); };
    if (cold)
      for (const auto& w : weights_) evict(w);
    for (size_t i = 0; i < in_.size(); i++)
      if (const ir::TensorView& v = inputs_.arrived[i]; v.data != nullptr)
        touch(bytes_of(v, MOKA_TRY(kernel::storage_bytes(v.dtype, v.shape, inputs_.call.layouts[i]))));
    const double start = now();
    for (const Conversion& c : before_) launch_conversion(c.in, c.from, c.out, c.to, plan_threads_);
    const kernel::KernelArgs args{
        in_, out_, scratch_, &inputs_.call.call, 0, choice_->tiles, 0, threads_scratch_, thread_step_};
    MOKA_TRY(launch(*choice_, args, threads_, inputs_.call.epilogue));
    for (const Conversion& c : after_) launch_conversion(c.in, c.from, c.out, c.to, plan_threads_);
    return now() - start;
  }

  Result<ir::TensorView> constant(int arg) override { return inputs_.value(static_cast<size_t>(arg)); }
  Result<std::shared_ptr<const std::byte>> pack(
      int arg, std::string_view, size_t bytes,
      const std::function<Status(const ir::TensorView&, std::byte*)>& fill) override {
    const ir::TensorView value = MOKA_TRY(constant(arg));
    return pack_stored(arg, {}, bytes, [&](std::byte* to) { return fill(value, to); });
  }
  Result<std::shared_ptr<const std::byte>> pack_stored(int, std::string_view, size_t bytes,
                                                       const std::function<Status(std::byte*)>& fill) override {
    std::byte* to = MOKA_TRY(memory_.take(bytes));
    MOKA_TRY(fill(to));
    weights_.emplace_back(to, bytes);
    return std::shared_ptr<const std::byte>(std::shared_ptr<void>(), to);
  }

 private:
  Result<ir::TensorView> input(size_t i) {
    const MatchCall& call = inputs_.call;
    if (i < choice_->in_prepare_only.size() && choice_->in_prepare_only[i]) {
      if (auto stored = call.stored_in_any_format(static_cast<int>(i)))
        weights_.push_back(bytes_of(stored->elements.view(), stored->elements.bytes()));
      ir::TensorView v;
      v.dtype = call.call.all_args()[i].type->dtype();
      v.shape = call.call.all_args()[i].type->shape();
      return v;
    }
    const Layout wanted = i < choice_->in.size() ? choice_->in[i] : Layout{};
    if (call.constant_args[i]) {
      const ir::TensorView v = MOKA_TRY(inputs_.in_layout(i, wanted, true));
      weights_.push_back(bytes_of(v, MOKA_TRY(kernel::storage_bytes(v.dtype, v.shape, wanted))));
      return v;
    }
    if (wanted == call.layouts[i]) return inputs_.arrived[i];
    const ir::TensorView converted = MOKA_TRY(inputs_.in_layout(i, wanted, false));
    before_.push_back({inputs_.arrived[i], converted, call.layouts[i], wanted});
    return converted;
  }

  std::unique_ptr<KernelChoice> choice_;
  int threads_, plan_threads_ = 1;
  Inputs& inputs_;
  Memory& memory_;
  std::vector<std::span<const std::byte>> weights_;
  std::vector<ir::TensorView> in_, out_;
  std::vector<Conversion> before_, after_;
  std::byte *scratch_ = nullptr, *threads_scratch_ = nullptr;
  size_t thread_step_ = 0;
};

/// A run that spends a larger part of its time waiting for a processor is not counted.
constexpr double kDisturbed = 0.02;

/// The shortest times of one candidate, with weights outside all caches or in the caches.
struct Least {
  double first = HUGE_VAL, second = HUGE_VAL;
  int count = 0;  ///< runs that nothing interrupted
  void add(double seconds, bool is_interrupted) {
    second = std::min(second, std::max(first, seconds));
    first = std::min(first, seconds);
    count += !is_interrupted || seconds > kBetweenSwitches;
  }
  bool is_out(double fastest) const { return count >= kFewest && first > kHopeless * fastest; }
  bool is_settled() const { return count >= kFewest && second <= kNear * first + kNearSeconds; }
};

/// One measurement: candidates that run in turns until their times are known.
class Race {
 public:
  Race(std::vector<Prepared>& prepared, int threads)
      : prepared_(prepared), threads_(threads), least_(prepared.size()), failed_(prepared.size()) {}

  /// Whether the times are known.
  bool run() {
    const auto start = Clock::now();
    const double waited = this->waited();
    for (int round = 0; round < kMost; round++) {
      double spent = seconds_since(start);
      if (spent > kSeconds) spent = std::max(kSeconds, spent - (this->waited() - waited) / threads_);
      if (round > 2 * kFewest && spent >= (is_settled() ? 1 : kPatience) * kSeconds) break;
      for (size_t i = 0; i < prepared_.size(); i++) turn(i, round % 2, round == 0);
    }
    return is_settled();
  }

  plan::Timed time_of(size_t i) const {
    if (failed_[i]) return {};
    const auto& [warm, cold] = least_[i];
    return {(warm.first + cold.first) / 2, (warm.second + cold.second) / 2};
  }

 private:
  double waited() const { return seconds_waited(threads_ == 1 ? Waiting::thread : Waiting::process); }

  void turn(size_t i, int cold, bool is_first) {
    Least& least = least_[i][static_cast<size_t>(cold)];
    double& fastest = fastest_[cold];
    if (failed_[i] || least.is_out(fastest)) return;
    const bool alone = threads_ == 1;
    const double before = alone ? 0 : waited();
    const int64_t switched = alone ? switches() : 0;
    auto seconds = prepared_[i].run(cold != 0);
    failed_[i] = !seconds.ok();
    if (is_first || !seconds.ok()) return;
    if (alone)
      least.add(*seconds, switches() != switched);
    else if (waited() - before <= kDisturbed * *seconds)
      least.add(*seconds, false);
    fastest = std::min(fastest, least.first);
  }

  bool is_settled() const {
    for (size_t i = 0; i < least_.size(); i++)
      for (size_t cold = 0; cold < 2 && !failed_[i]; cold++)
        if (!least_[i][cold].is_out(fastest_[cold]) && !least_[i][cold].is_settled()) return false;
    return true;
  }

  std::vector<Prepared>& prepared_;
  int threads_;
  std::vector<std::array<Least, 2>> least_;
  std::vector<bool> failed_;
  double fastest_[2] = {HUGE_VAL, HUGE_VAL};
};

class Timer final : public plan::KernelTimer {
 public:
  Result<std::optional<std::vector<plan::Timed>>> time(const MatchCall& call, std::span<plan::Candidate> candidates,
                                                       std::span<const Layout> home,
                                                       const plan::PlanOptions& options) override {
    std::lock_guard lock(mutex_);  // two measurements would disturb each other
    Memory memory(pages_, options.budget ? options.budget->limit() : SIZE_MAX);
    Inputs inputs{call, memory, {}, {}};
    MOKA_TRY(inputs.make());
    std::vector<Prepared> prepared;
    prepared.reserve(candidates.size());
    for (plan::Candidate& c : candidates) {
      prepared.emplace_back(std::move(c), inputs, memory);
      MOKA_TRY(prepared.back().make(home, options.threads));
    }
    Race race(prepared, options.threads);
    if (!race.run()) return std::optional<std::vector<plan::Timed>>();
    std::vector<plan::Timed> out;
    for (size_t i = 0; i < prepared.size(); i++) out.push_back(race.time_of(i));
    return std::optional(std::move(out));
  }

  void rest() override {
    std::lock_guard lock(mutex_);
    pages_.free();
  }

 private:
  std::mutex mutex_;
  Pages pages_;
};

}  // namespace

std::shared_ptr<plan::KernelTimer> kernel_timer() { return std::make_shared<Timer>(); }

}  // namespace moka::runtime
