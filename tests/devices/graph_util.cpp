// SPDX-License-Identifier: Apache-2.0
#include "devices/graph_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "build_op.h"
#include "devices/cpu/device.h"
#include "devices/reference/device.h"
#include "ir/op_def.h"
#include "plan/constants.h"

namespace moka::devices_test {

using namespace ir;

Graph::Graph(Opset opset, unsigned seed)
    : function_("main", opset), builder_(ops::table(), function_.body()), random_(seed) {}

Tensor Graph::random(const Shape& shape, float low, float high) {
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> v(static_cast<size_t>(shape.count()));
  for (float& x : v) x = draw(random_);
  return Tensor::f32(shape, v);
}

Value* Graph::input_of(Tensor value) {
  inputs_.push_back(value);
  return function_.body().add_input(cat("x", inputs_.size()), Type::tensor(value.dtype(), value.shape()));
}

Value* Graph::input(const Shape& shape, float low, float high) { return input_of(random(shape, low, high)); }

Value* Graph::constant(Tensor value) {
  auto v = builder_.constant("w", std::move(value));
  EXPECT_TRUE(v.ok()) << v.error().to_string();
  return v.ok() ? *v : nullptr;
}

Value* Graph::op(std::string_view name, std::vector<NamedArg> args) {
  const std::vector<Value*> made = ops(name, std::move(args));
  return made.empty() ? nullptr : made[0];
}

std::vector<Value*> Graph::ops(std::string_view name, std::vector<NamedArg> args) {
  return build_op(builder_, name, std::move(args));
}

plan::PlanOptions options(bool cpu, int threads) {
  plan::PlanOptions o;
  if (cpu) o.devices.push_back(&devices::cpu::device());
  o.devices.push_back(&devices::reference::device());
  o.threads = threads;
  o.budget = std::make_shared<MemoryBudget>();
  o.constants = std::make_shared<plan::ConstantPool>(o.budget);
  return o;
}

const plan::KernelCall& step_of(const Run& r, std::string_view op) {
  for (const plan::Step& s : r.plan->sequence.steps)
    if (const plan::KernelCall* call = plan::kernel_of(s); call != nullptr && call->op->type_name() == op) return *call;
  ADD_FAILURE() << "no step of " << op;
  static const plan::KernelCall none;
  return none;
}

Shape shape_of(int64_t a, int64_t b, const std::vector<int64_t>& rest) {
  Shape s{a, b};
  for (int64_t d : rest) s.push_back(d);
  return s;
}

Tensor random_bytes(DType dtype, const Shape& shape, unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<std::byte> bytes(*storage_bytes(dtype, shape));
  for (std::byte& b : bytes) b = static_cast<std::byte>(draw());
  return *Tensor::wrap(dtype, shape, Bytes::copy_of(bytes));
}

Result<Run> run(const Function& f, std::span<const Tensor> inputs, bool cpu, int threads, int times) {
  return run(f, inputs, options(cpu, threads), times);
}

Result<Run> run(const Function& f, std::span<const Tensor> inputs, const plan::PlanOptions& o, int times) {
  runtime::ExecContext context;
  context.options = &o;
  std::vector<Type> types;
  for (const Tensor& t : inputs) types.push_back(Type::tensor(t.dtype(), t.shape()));
  Run r;
  r.constants = o.constants;
  r.plan = MOKA_TRY(plan::plan_block(f.body(), types, nullptr, o));
  auto frame = MOKA_TRY(runtime::Frame::make(r.plan, nullptr, context));
  for (size_t i = 0; i < inputs.size(); i++) frame->set_input(i, inputs[i].data());
  for (int n = 0; n < times; n++) MOKA_TRY(frame->run());
  for (size_t i = 0; i < f.body().outputs().size(); i++) {
    const TensorView& v = frame->output(i);
    Tensor t;
    if (v.dtype == DType::string) {
      t = Tensor::strings(v.shape, std::vector<std::string>(v.as<std::string>(), v.as<std::string>() + v.count()));
    } else if (v.dtype != DType::none) {
      t = MOKA_TRY(Tensor::zeros(v.dtype, v.shape));
      if (t.bytes() > 0) std::memcpy(t.mutable_data(), v.data, t.bytes());
    }
    r.outputs.push_back(std::move(t));
  }
  for (const plan::Step& s : r.plan->sequence.steps) {
    if (!r.kernels.empty()) r.kernels += ' ';
    if (const plan::Run* run = std::get_if<plan::Run>(&s))
      r.kernels += cat(run->choice->kernel, run->choice->note.empty() ? "" : "(", run->choice->note,
                       run->choice->note.empty() ? "" : ")");
    else
      r.kernels += std::holds_alternative<plan::Convert>(s) ? "convert" : "control";
  }
  return r;
}

void expect_near(const Tensor& a, const Tensor& e, double tolerance, const std::string& what) {
  EXPECT_EQ(a.dtype(), e.dtype());
  EXPECT_TRUE(a.shape() == e.shape());
  if (!(a.shape() == e.shape())) return;
  double scale = 1;
  for (int64_t k = 0; k < e.count(); k++)
    if (double v = std::fabs(load_f64(e.view(), k)); std::isfinite(v)) scale = std::max(scale, v);
  if (!is_float(e.dtype())) scale = 0;
  for (int64_t k = 0; k < e.count(); k++) {
    const double x = load_f64(a.view(), k), y = load_f64(e.view(), k);
    if (std::isnan(y) && std::isnan(x)) continue;
    if (std::isinf(y) && x == y) continue;
    if (!(std::fabs(x - y) <= tolerance * scale)) {
      ADD_FAILURE() << what << " [" << k << "] expected " << y << ", got " << x;
      break;
    }
  }
}

RelativeError relative_error(const Tensor& got, const Tensor& expected) {
  const auto made = got.as<float>(), want = expected.as<float>();
  double scale = 0, largest = 0, squares = 0;
  for (size_t i = 0; i < want.size(); i++) {
    const double off = static_cast<double>(made[i]) - static_cast<double>(want[i]);
    scale = std::max(scale, std::fabs(static_cast<double>(want[i])));
    largest = std::max(largest, std::fabs(off));
    squares += off * off;
  }
  return {largest / scale, std::sqrt(squares / static_cast<double>(want.size())) / scale};
}

void expect_error_below(Graph& g, const Run& got, double largest, double rms) {
  const auto truth = run(g.function(), g.inputs(), false, 1);
  ASSERT_TRUE(truth.ok()) << truth.error().to_string();
  const RelativeError error = relative_error(got.outputs[0], truth->outputs[0]);
  EXPECT_LE(error.largest, largest);
  EXPECT_LE(error.rms, rms);
}

Value* with_epilogue(Graph& g, Value* y, const std::vector<Epilogue>& epilogue, bool addend) {
  if (y == nullptr) return nullptr;
  y->producer()->epilogue = epilogue;
  if (addend) y->producer()->set_input("addend", {g.input(y->type.shape())});
  return y;
}

std::vector<std::vector<Epilogue>> sample_epilogues() {
  return {{},
          {{"relu"}},
          {{"relu6"}},
          {{"clip", 0.5f, 2}},
          {{"clip", -2, -0.5f}},
          {{"clip", -0.5f, 2}, {"relu"}},
          {{"sigmoid"}},
          {{"silu"}},
          {{"gelu"}},
          {{"exp"}},
          {{"moka_hard_swish"}},
          {{"relu"}, {"linear_activation", 2, 3}},
          {{"sigmoid_hard", 0.2f, 0.5f}, {"tanh"}}};
}

Run expect_same(Graph& g, std::vector<Value*> outputs, double tolerance, bool anywhere) {
  for (Value* v : outputs)
    if (v == nullptr) return {};
  g.function().body().set_outputs(outputs);
  auto got = run(g.function(), g.inputs(), true, g.threads, 2);
  auto expected = run(g.function(), g.inputs(), false, 1);
  EXPECT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_TRUE(expected.ok()) << expected.error().to_string();
  if (!got.ok() || !expected.ok()) return {};
  for (const plan::Step& s : got->plan->sequence.steps) {
    const plan::Run* run = std::get_if<plan::Run>(&s);
    if (run == nullptr || anywhere) continue;
    std::string why;
    for (const plan::Refusal& r : run->refusals) why += r.reason;
    EXPECT_EQ(run->device->name(), "cpu") << run->op->type_name() << ": " << why;
  }
  for (size_t i = 0; i < outputs.size(); i++)
    expect_near(got->outputs[i], expected->outputs[i], tolerance, cat("output ", i, " of ", got->kernels));
  return std::move(*got);
}

Run run_by(std::string_view kernel, Graph& g, Value* output) {
  if (output == nullptr) return {};
  g.function().body().set_outputs({output});
  auto o = options(true, g.threads);
  o.choices = std::make_shared<plan::KernelChoices>();
  o.choices->pins[output->producer()->name] = std::string(kernel);
  auto r = run(g.function(), g.inputs(), o, 2);
  EXPECT_TRUE(r.ok()) << r.error().to_string();
  return r.ok() ? std::move(*r) : Run{};
}

Run expect_same_by(std::string_view kernel, Graph& g, Value* output, double tolerance) {
  Run got = run_by(kernel, g, output);
  if (got.outputs.empty()) return got;
  auto expected = run(g.function(), g.inputs(), false, 1);
  EXPECT_TRUE(expected.ok()) << expected.error().to_string();
  if (expected.ok()) expect_near(got.outputs[0], expected->outputs[0], tolerance, std::string(kernel));
  return got;
}

void expect_same_bits(Graph& g, ir::Value* output, std::string_view kernel, const std::string& what) {
  g.function().body().set_outputs({output});
  const auto one = run(g.function(), g.inputs(), true, 1);
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_NE(one->kernels.find(kernel), std::string::npos) << one->kernels;
  for (int threads : {2, 3}) {
    const auto more = run(g.function(), g.inputs(), true, threads, 3);
    ASSERT_TRUE(more.ok()) << more.error().to_string();
    const auto a = one->outputs[0].as<float>(), b = more->outputs[0].as<float>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << what << " with " << threads;
  }
}

}  // namespace moka::devices_test
