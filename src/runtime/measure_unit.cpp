// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "plan/plan.h"
#include "runtime/frame.h"
#include "runtime/rates.h"

namespace moka::runtime {

namespace {

/// Runs of each program; more where they are short.
constexpr int kFewestRuns = 3, kMostRuns = 30;
constexpr double kRunSeconds = 60e-3;
/// A run does not count if threads waited longer for a processor than this part of its time and the wake-ups of a
/// queue.
constexpr double kDisturbedPart = 0.05, kWakeUps = 0.2e-3;
/// How many times longer runs are repeated until enough of them count.
constexpr double kMostPatience = 5;
/// After so many seconds each program runs just once more, so that a device takes a second or two in all.
constexpr double kBudget = 1.2;
/// Sizes are chosen so that one run of a long chain takes at most about so many seconds.
constexpr double kLongestRun = 40e-3;
/// Operations of a long chain beyond those of a short one.
constexpr int kMore = 4;
constexpr int64_t kSmallSide = 256, kLargeSide = 1024;
constexpr int64_t kFewElements = int64_t{1} << 20;
constexpr int kInputs = 8;
/// Tensors of elementwise operations are this many times as large as the last-level cache, within these bytes.
constexpr int64_t kCaches = 4, kLeastTensorBytes = int64_t{64} << 20, kMostTensorBytes = int64_t{512} << 20;
/// The part of the free memory that one of them may take.
constexpr int64_t kPartOfMemory = 16;

/// Elements of a float32 tensor that no cache holds. What a device's own cache holds is not known. Fewer where a chain
/// of operations on them would take too long, by the seconds of one operation on kFewElements.
int64_t elements_beyond_caches(bool is_host, double seconds) {
  int64_t bytes = kLeastTensorBytes;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (is_host)
    bytes = std::clamp(kCaches * int64_t{::sysconf(_SC_LEVEL3_CACHE_SIZE)}, kLeastTensorBytes, kMostTensorBytes);
#endif
  const int64_t memory = int64_t{::sysconf(_SC_AVPHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const int64_t beyond = std::max(std::min(bytes, memory / kPartOfMemory), int64_t{16} << 20) / 4;
  const double in_time = kLongestRun / ((1 + kMore) * std::max(seconds, 1e-9));
  return in_time * kFewElements > static_cast<double>(beyond)
             ? beyond
             : std::max(kFewElements, static_cast<int64_t>(in_time) * kFewElements);
}

/// The measured time of a program of one kind of operation, and its kernels' estimate.
struct Timed {
  double seconds = 0, estimated = 0;
};

class Programs {
 public:
  Programs(const kernel::Device& device, std::span<const kernel::Device* const> hosts, int threads, Waited waited)
      : waited_(waited), whose_(device.memory() == nullptr ? Waiting::process : Waiting::thread) {
    options_.devices = {&device};
    if (device.memory() != nullptr) options_.devices.insert(options_.devices.end(), hosts.begin(), hosts.end());
    options_.threads = threads;
    options_.strict = true;
    options_.pinned_device = [&device](const ir::Op&) { return &device; };
  }

  /// `count` products of square matrices one after the other.
  Result<Timed> products(int64_t side, int count, bool half) {
    return timed(half, {{side, side}}, [&](ir::Builder& b, std::vector<ir::Value*> v) -> Result<ir::Value*> {
      ir::Tensor weights = MOKA_TRY(ir::Tensor::zeros(ir::DType::fp32, {side, side}));
      ir::Value* w = MOKA_TRY(b.constant("w", std::move(weights)));
      for (int i = 0; i < count; i++) v[0] = MOKA_TRY(b.op("matmul", {{"x", v[0]}, {"y", w}}));
      return v[0];
    });
  }
  /// Each squares the result before it. Operations with two uses of one value are not joined to one dispatch.
  Result<Timed> elementwise(int64_t elements, int count) {
    return timed(false, {{elements}}, [&](ir::Builder& b, std::vector<ir::Value*> v) -> Result<ir::Value*> {
      for (int i = 0; i < count; i++) v[0] = MOKA_TRY(b.op("mul", {{"x", v[0]}, {"y", v[0]}}));
      return v[0];
    });
  }
  /// As above, on a tensor that the device makes itself. Only one element is read back, so transfers are negligible.
  Result<Timed> resident(int64_t elements, int count) {
    return timed(false, {{1}}, [&](ir::Builder& b, std::vector<ir::Value*> v) -> Result<ir::Value*> {
      v[0] = MOKA_TRY(b.op("tile", {{"x", v[0]}, {"reps", ir::Ints{elements}}}));
      for (int i = 0; i < count; i++) v[0] = MOKA_TRY(b.op("mul", {{"x", v[0]}, {"y", v[0]}}));
      return b.op("slice_by_size", {{"x", v[0]}, {"begin", ir::Ints{0}}, {"size", ir::Ints{1}}});
    });
  }
  /// Sums of `count` inputs of one element.
  Result<Timed> inputs(int count) {
    return timed(false, std::vector<ir::Shape>(static_cast<size_t>(count), ir::Shape{1}),
                 [&](ir::Builder& b, std::vector<ir::Value*> v) -> Result<ir::Value*> {
                   for (size_t i = 1; i < v.size(); i++) v[0] = MOKA_TRY(b.op("add", {{"x", v[0]}, {"y", v[i]}}));
                   return MOKA_TRY(b.op("relu", {{"x", v[0]}}));
                 });
  }
  /// Whether too few runs of any program counted.
  bool disturbed() const { return disturbed_; }

 private:
  template <class Build>
  Result<Timed> timed(bool half, const std::vector<ir::Shape>& shapes, Build build) {
    ir::Function f("main", ir::Opset::ios17);
    ir::Builder builder(ops::table(), f.body());
    std::vector<ir::Value*> values;
    std::vector<ir::Type> types;
    std::vector<ir::Tensor> data;
    for (const ir::Shape& s : shapes) {
      types.push_back(ir::Type::tensor(ir::DType::fp32, s));
      values.push_back(f.body().add_input(cat("x", values.size()), types.back()));
      data.push_back(MOKA_TRY(ir::Tensor::zeros(ir::DType::fp32, s)));
    }
    ir::Value* result = MOKA_TRY(build(builder, values));
    f.body().set_outputs({result});
    for (const auto& op : f.body().ops())
      for (size_t i = 0; half && i < op->output_count(); i++) op->output(i)->half = true;
    plan::PlanOptions options = options_;
    options.constants = std::make_shared<plan::ConstantPool>(nullptr);
    auto plan = MOKA_TRY(plan::plan_block(f.body(), types, nullptr, options));
    ExecContext context;
    context.options = &options;
    auto frame = MOKA_TRY(Frame::make(plan, nullptr, context));
    for (size_t i = 0; i < data.size(); i++) frame->set_input(i, data[i].data());
    MOKA_TRY(frame->run());
    Timed out{HUGE_VAL, 0};
    double least = HUGE_VAL;  // of all runs
    int counted = 0, runs = 0;
    const auto start = Clock::now();
    for (int i = 0; counted < kMostRuns && i < kMostRuns * kMostPatience; i++) {
      const double waited_before = waited_(whose_);
      const auto before = Clock::now();
      MOKA_TRY(frame->run());
      runs++;
      const auto after = Clock::now();
      const double seconds = std::chrono::duration<double>(after - before).count();
      least = std::min(least, seconds);
      if (waited_(whose_) - waited_before <= kDisturbedPart * seconds + kWakeUps) {
        out.seconds = std::min(out.seconds, seconds);
        counted++;
      }
      const double spent = std::chrono::duration<double>(after - start).count();
      if (i + 1 >= kFewestRuns && spent > (counted >= kFewestRuns ? 1 : kMostPatience) * kRunSeconds) break;
      if (seconds_since(start_) > kBudget) break;
    }
    if (counted < std::min(runs, kFewestRuns)) {
      disturbed_ = true;
      out.seconds = std::min(out.seconds, least);
    }
    plan::for_each_step(plan->sequence, [&]<class One>(int, const One& step, int) {
      if constexpr (std::is_same_v<One, plan::Run>) out.estimated += step.choice->cost;
    });
    return out;
  }

  plan::PlanOptions options_;
  const Clock::time_point start_ = Clock::now();
  Waited waited_;
  Waiting whose_;  ///< threads of a driver may compute on the processors, more of them than there are
  bool disturbed_ = false;
};

/// The part of a measured time below which a difference cannot be told from noise.
constexpr double kNoise = 0.02;

/// Work per second of one more operation, as measured and as estimated.
struct Rate {
  double measured = 0, estimated = 0;
};
Rate rate_of(double work, const Timed& few, const Timed& more) {
  const double seconds = (more.seconds - few.seconds) / kMore, estimated = (more.estimated - few.estimated) / kMore;
  if (!(seconds > kNoise * few.seconds / kMore) || !(estimated > 0)) return {};
  return {work / seconds, work / estimated};
}

Result<kernel::UnitRates> rates_of(const kernel::Device& device, Programs& programs) {
  kernel::UnitRates out;
  const auto products = [&](bool half) -> Result<Rate> {
    auto small = programs.products(kSmallSide, 1, half);
    if (!small.ok() && small.error().code() == ErrorCode::unsupported) return Rate{};
    Timed few = MOKA_TRY(std::move(small));
    int64_t side = kSmallSide;
    for (double seconds = (1 + kMore) * few.seconds; side < kLargeSide && 8 * seconds < kLongestRun; side *= 2)
      seconds *= 8;
    if (side > kSmallSide) few = MOKA_TRY(programs.products(side, 1, half));
    const Timed more = MOKA_TRY(programs.products(side, 1 + kMore, half));
    return rate_of(2.0 * static_cast<double>(side * side * side), few, more);
  };
  const Rate fp32 = MOKA_TRY(products(false));
  const Rate fp16 = device.memory() != nullptr ? MOKA_TRY(products(true)) : Rate{};
  out.measured.fp32 = fp32.measured;
  out.estimated.fp32 = fp32.estimated;
  out.measured.fp16 = fp16.measured;
  out.estimated.fp16 = fp16.estimated;

  const bool is_host = device.memory() == nullptr;
  const auto squares = [&](int64_t elements, int count) {
    return is_host ? programs.elementwise(elements, count) : programs.resident(elements, count);
  };
  auto small = squares(kFewElements, 1);
  if (!small.ok() && small.error().code() == ErrorCode::unsupported) return out;
  const int64_t elements = elements_beyond_caches(is_host, MOKA_TRY(std::move(small)).seconds);
  const Timed few = MOKA_TRY(squares(elements, 1)), more = MOKA_TRY(squares(elements, 1 + kMore));
  const double bytes = 4.0 * static_cast<double>(elements);
  const Rate memory = rate_of(2 * bytes, few, more);
  out.measured.bytes = memory.measured;
  out.estimated.bytes = memory.estimated;
  if (is_host) {
    out.launch = out.latency = 0;
    return out;
  }
  const Timed large = MOKA_TRY(programs.elementwise(elements, 1));
  const Timed one = MOKA_TRY(programs.inputs(1)), many = MOKA_TRY(programs.inputs(kInputs));
  const double computing = memory.measured > 0 ? 2 * bytes / memory.measured : 0;
  set_transfer_rates(out, {bytes, large.seconds, computing, one.seconds, many.seconds, kInputs});
  return out;
}

}  // namespace

void set_transfer_rates(kernel::UnitRates& rates, const TransferTimes& t) {
  rates.latency = std::max(0.1e-6, (t.several - t.one) / (t.inputs - 1));
  rates.launch = std::max(1e-6, t.one - 2 * rates.latency);
  const double moving = t.large - t.one - t.computing;
  if (moving > kNoise * t.large) rates.bytes_per_second = 2 * t.bytes / moving;
}

Result<MeasuredUnit> measure_unit(const kernel::Device& device, std::span<const kernel::Device* const> hosts,
                                  int threads, Waited waited) {
  Programs programs(device, hosts, threads, waited);
  const kernel::UnitRates rates = MOKA_TRY(rates_of(device, programs));
  return MeasuredUnit{rates, programs.disturbed()};
}

}  // namespace moka::runtime
