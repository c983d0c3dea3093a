// SPDX-License-Identifier: Apache-2.0
#include "layer_util.h"

#include <algorithm>
#include <limits>
#include <random>

#include "devices/cpu/device.h"
#include "ir/op_def.h"
#include "plan/constants.h"
#include "roof.h"
#include "runtime/frame.h"

namespace moka::bench {

namespace {

/// The CPU device with only one of its kernels.
class Only final : public kernel::Device {
 public:
  explicit Only(std::string_view kernel) {
    for (const kernel::KernelDef& k : devices::cpu::device().kernels())
      if (k.name == kernel) kernels_.push_back(k);
  }
  std::string_view name() const override { return "only"; }
  std::string description() const override { return {}; }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::cpu; }
  int rank() const override { return 0; }
  std::span<const kernel::KernelDef> kernels() const override { return kernels_; }
  kernel::Match claim(const kernel::MatchCall& call) const override {
    kernel::MatchCall asked = call;
    asked.asked = true;
    return Device::claim(asked);
  }

 private:
  std::vector<kernel::KernelDef> kernels_;
};

struct Timer final : runtime::TraceSink {
  const plan::Step* timed = nullptr;
  double seconds = 0;
  void step(const plan::Plan&, const plan::Step& s, double t, std::span<const ir::TensorView>) override {
    if (&s == timed) seconds = t;
  }
};

ir::Tensor random(const ir::Shape& shape, float scale, unsigned seed) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> draw(-scale, scale);
  std::vector<float> v(static_cast<size_t>(shape.count()));
  for (float& x : v) x = draw(bits);
  return ir::Tensor::f32(shape, v);
}

}  // namespace

struct Layer::Copy {
  Only device;
  plan::PlanOptions options;
  ir::Function function{"main", ir::Opset::ios17};
  ir::Tensor input;
  runtime::ExecContext context;
  Timer timer;
  std::unique_ptr<runtime::Frame> frame;

  explicit Copy(std::string_view kernel) : device(kernel) {}
};

namespace {

size_t copies_for(int64_t weights) {
  constexpr double kAllWeights = 96e6;  // total size of the copies of the weights, which exceeds the caches
  constexpr size_t kMost = 8;
  return std::clamp<size_t>(static_cast<size_t>(kAllWeights / (4.0 * static_cast<double>(weights))), 1, kMost);
}

}  // namespace

size_t copies_of(const Conv& conv) {
  if (conv.weights() < conv.results()) return 1;  // results reuse memory in the caches
  return copies_for(conv.weights());
}

std::optional<Layer> Layer::make(std::string_view kernel, size_t copies, const ir::Shape& shape, int threads,
                                 const Build& build) {
  Layer layer;
  for (size_t i = 0; i < copies; i++) {
    auto copy = std::make_shared<Copy>(kernel);
    copy->options.devices = {&copy->device};
    copy->options.threads = threads;
    copy->options.budget = std::make_shared<MemoryBudget>();
    copy->options.constants = std::make_shared<plan::ConstantPool>(copy->options.budget);
    copy->input = random(shape, 1, 1);
    ir::Block& body = copy->function.body();
    ir::Value* x = body.add_input("x", ir::Type::tensor(ir::DType::fp32, shape));
    ir::Builder builder(ops::table(), body);
    auto y = build(builder, x, static_cast<unsigned>(i));
    if (!y.ok()) return std::nullopt;
    body.set_outputs({*y});
    auto plan = plan::plan_block(body, {{ir::Type::tensor(ir::DType::fp32, shape)}}, nullptr, copy->options);
    if (!plan.ok()) return std::nullopt;
    for (const plan::Step& s : (*plan)->sequence.steps)
      if (std::holds_alternative<plan::Run>(s)) copy->timer.timed = &s;
    copy->context.options = &copy->options;
    copy->context.trace = &copy->timer;
    auto frame = runtime::Frame::make(*plan, nullptr, copy->context);
    if (!frame.ok()) return std::nullopt;
    copy->frame = std::move(*frame);
    copy->frame->set_input(0, copy->input.data());
    layer.copies_.push_back(std::move(copy));
  }
  return layer;
}

std::optional<Layer> Layer::make(std::string_view kernel, const Conv& conv, int threads) {
  const auto axes = static_cast<size_t>(conv.axes());
  ir::Shape shape{1, conv.in}, weight{conv.out, conv.in / conv.groups};
  if (conv.transposed()) weight = {conv.in, conv.out / conv.groups};
  std::vector<int64_t> pad;
  for (size_t i = 0; i < axes; i++) {
    shape.push_back(conv.size);
    weight.push_back(conv.taps[i]);
    pad.insert(pad.end(), 2, conv.pad[i]);
  }
  return make(kernel, copies_of(conv), shape, threads, [&](ir::Builder& builder, ir::Value* x, unsigned seed) {
    auto y = builder.op(conv.transposed() ? "conv_transpose" : "conv",
                        {{"x", x},
                         {"weight", random(weight, 0.1f, seed)},
                         {"bias", random({conv.out}, 1, 2)},
                         {"groups", static_cast<int>(conv.groups)},
                         {"strides", ir::Tensor::i32(std::vector<int64_t>(axes, conv.stride))},
                         {"dilations", ir::Tensor::i32(std::vector<int64_t>(axes, conv.dilation))},
                         {"pad_type", "custom"},
                         {"pad", ir::Tensor::i32(pad)}});
    if (y.ok() && *conv.after != 0) (*y)->producer()->epilogue = {{conv.after}};
    return y;
  });
}

std::optional<Layer> Layer::make(std::string_view kernel, const Product& p, int threads) {
  return make(kernel, copies_for(p.depth * p.columns), {p.rows, p.depth}, threads,
              [&](ir::Builder& builder, ir::Value* x, unsigned seed) {
                return builder.op("linear", {{"x", x},
                                             {"weight", random({p.columns, p.depth}, 0.1f, seed)},
                                             {"bias", random({p.columns}, 1, 2)}});
              });
}

double Layer::run() {
  Copy& copy = *copies_[next_];
  next_ = (next_ + 1) % copies_.size();
  if (!copy.frame->run().ok()) return std::numeric_limits<double>::infinity();
  return copy.timer.seconds;
}

void time_layer(benchmark::State& state, std::optional<Layer> layer, double flops, double bytes, int threads) {
  if (!layer) {
    state.SkipWithError("refused");
    return;
  }
  Shortest shortest;
  for (auto _ : state) {
    const double seconds = layer->run();
    state.SetIterationTime(seconds);
    shortest.add(seconds);
  }
  shortest.report(state, flops, threads, bytes);
}

}  // namespace moka::bench
