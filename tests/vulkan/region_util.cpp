// SPDX-License-Identifier: Apache-2.0
#include "vulkan/region_util.h"

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "build_op.h"
#include "kernel/epilogue.h"
#include "kernel/layout.h"

namespace moka::vulkan_test {

using namespace ir;
using kernel::BufferView;
using kernel::Layout;

namespace {

/// An operation's inputs as kernels see them.
struct Call {
  std::vector<Arg> args;
  std::vector<uint32_t> first;
  std::vector<const Value*> values;
  std::optional<OpCall> call;

  Call(const Op& op, const std::map<const Value*, TensorView>& known) {
    const OpVersion& v = op.version();
    for (size_t p = 0; p < v.params.size(); p++) {
      first.push_back(static_cast<uint32_t>(args.size()));
      for (const Operand& o : op.operands()) {
        if (o.param != static_cast<int>(p)) continue;
        for (const Value* value : o.values) {
          auto at = known.find(value);
          args.push_back({&value->type, at == known.end() ? nullptr : &at->second});
          values.push_back(value);
        }
      }
    }
    first.push_back(static_cast<uint32_t>(args.size()));
    call.emplace(v, op.name, args, first);
    call->op = &op;
  }
};

/// Uploads at once; nothing is shared.
class Prepare final : public kernel::PrepareContext {
 public:
  Prepare(const kernel::Memory& memory, std::vector<const TensorView*> values)
      : memory_(memory), values_(std::move(values)) {}
  moka::Result<TensorView> constant(int arg) override { return *values_[static_cast<size_t>(arg)]; }
  moka::Result<std::shared_ptr<const std::byte>> pack(
      int, std::string_view, size_t, const std::function<Status(const TensorView&, std::byte*)>&) override {
    return fail(ErrorCode::internal, "packed in host memory");
  }
  moka::Result<std::shared_ptr<const std::byte>> pack_stored(int, std::string_view, size_t,
                                                             const std::function<Status(std::byte*)>&) override {
    return fail(ErrorCode::internal, "packed in host memory");
  }
  moka::Result<std::shared_ptr<const kernel::Buffer>> upload(
      int arg, std::string_view, size_t bytes,
      const std::function<Status(const TensorView&, std::byte*)>& fill) override {
    return upload_stored(arg, {}, bytes, [&](std::byte* to) { return fill(*values_[static_cast<size_t>(arg)], to); });
  }
  moka::Result<std::shared_ptr<const kernel::Buffer>> upload_stored(
      int, std::string_view, size_t bytes, const std::function<Status(std::byte*)>& fill) override {
    std::vector<std::byte> host(bytes);
    MOKA_TRY(fill(host.data()));
    auto buffer = MOKA_TRY(memory_.allocate(bytes));
    MOKA_TRY(memory_.write(*buffer, 0, host.data(), bytes));
    return std::shared_ptr<const kernel::Buffer>(buffer);
  }

 private:
  const kernel::Memory& memory_;
  std::vector<const TensorView*> values_;
};

void round_to_half(Tensor& t) {
  if (t.dtype() != DType::fp32) return;
  for (float& v : t.mut<float>()) v = half::to_float(half(static_cast<double>(v)).bits);
}

}  // namespace

Region::Region(bool half, Opset opset)
    : half_(half), function_("main", opset), builder_(ops::table(), function_.body()), random_(7) {}

Tensor Region::random(const Shape& shape, float low, float high) {
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> v(static_cast<size_t>(shape.count()));
  for (float& x : v) x = draw(random_);
  return Tensor::f32(shape, v);
}

Value* Region::input(Tensor value) {
  if (half_) round_to_half(value);
  inputs_.push_back(value);
  return function_.body().add_input(cat("x", inputs_.size()), Type::tensor(value.dtype(), value.shape()));
}

Value* Region::constant(Tensor value) {
  if (half_) round_to_half(value);
  auto v = builder_.constant("w", std::move(value));
  EXPECT_TRUE(v.ok()) << v.error().to_string();
  return v.ok() ? *v : nullptr;
}

Tensor codes(DType dtype, const Shape& shape) {
  Tensor t = *Tensor::zeros(dtype, shape);
  const int n = 1 << bits(dtype);
  const bool is_signed = dtype == DType::int4 || dtype == DType::int8;
  for (int64_t i = 0; i < shape.count(); i++) store_i64(t.view(), i, i * 7 % n - (is_signed ? n / 2 : 0));
  return t;
}

Value* Region::stored(kernel::StoredConstant s) {
  const Shape& shape = s.elements.shape();
  // The entry of element i in a tensor of blocks, which may have one more axis.
  auto block = [&](const Tensor& t, int64_t i) {
    int64_t at = 0, step = 1;
    for (int d = shape.rank() - 1; d >= 0; d--) {
      at += i % shape[d] / (shape[d] / t.shape()[d]) * step;
      step *= t.shape()[d];
      i /= shape[d];
    }
    return static_cast<size_t>(at);
  };
  std::vector<float> v(static_cast<size_t>(shape.count()));
  for (int64_t i = 0; i < shape.count(); i++) {
    auto x = static_cast<float>(load_f64(s.elements.view(), i));
    if (!s.table.empty_handle()) {
      const auto entries = static_cast<size_t>(s.table.shape()[shape.rank()]);
      x = s.table.as<float>()[block(s.table, i) * entries + static_cast<size_t>(x)];
    }
    if (!s.offset.empty_handle()) x -= s.offset.as<float>()[block(s.offset, i)];
    if (!s.scale.empty_handle()) x *= s.scale.as<float>()[block(s.scale, i)];
    v[static_cast<size_t>(i)] = x;
  }
  auto value = builder_.constant("w", Tensor::f32(shape, v));
  EXPECT_TRUE(value.ok()) << value.error().to_string();
  stored_[*value] = std::move(s);
  return *value;
}

Value* Region::op(std::string_view name, std::vector<NamedArg> args) {
  const std::vector<Value*> made = ops(name, std::move(args));
  return made.empty() ? nullptr : made[0];
}

std::vector<Value*> Region::ops(std::string_view name, std::vector<NamedArg> args) {
  return build_op(builder_, name, std::move(args));
}

Region::Result Region::run(const std::vector<Value*>& outputs, int times) {
  Result r;
  const kernel::Device& device = *device_;
  const kernel::Memory& memory = *device.memory();
  std::map<const Value*, TensorView> constants, values;
  std::map<const Value*, BufferView> there;
  std::vector<Tensor> made;
  std::vector<std::shared_ptr<kernel::Buffer>> buffers;
  std::vector<kernel::Match> matches;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<kernel::RegionStep> steps;
  auto check = [&](const auto& result) {
    EXPECT_TRUE(result.ok()) << result.error().to_string();
    return result.ok();
  };
  auto place = [&](const Type& t, Layout layout) {
    BufferView v{t.dtype(), t.shape(), layout};
    auto bytes = kernel::storage_bytes(t.dtype(), t.shape(), layout);
    auto buffer = memory.allocate(*bytes + 256);
    if (!check(buffer)) return v;
    buffers.push_back(*buffer);
    v.buffer = buffer->get();
    v.offset = memory.alignment();  // nothing starts at the beginning of a buffer
    if (*bytes + v.offset > buffer->get()->bytes()) v.offset = 0;
    return v;
  };
  // Brings the value into the layout that the kernel needs, by a conversion if necessary.
  auto as = [&](const Value* value, Layout wanted) -> BufferView {
    auto at = there.find(value);
    if (at == there.end()) {
      const TensorView& c = constants.at(value);
      BufferView v = place(value->type, {});
      check(memory.write(const_cast<kernel::Buffer&>(*v.buffer), v.offset, c.data, *storage_bytes(c.dtype, c.shape)));
      at = there.emplace(value, v).first;
    }
    if (at->second.layout == wanted) return at->second;
    matches.push_back(device.convert(value->type.dtype(), value->type.shape(), at->second.layout, wanted));
    EXPECT_NE(matches.back().choice, nullptr) << matches.back().refusal;
    const BufferView to = place(value->type, wanted);
    kernel::RegionStep step;
    step.choice = matches.back().choice.get();
    step.in = {at->second};
    step.out = {to};
    steps.push_back(step);
    return to;
  };

  size_t next = 0;
  std::vector<BufferView> uploads, downloads;
  for (const auto& in : function_.body().inputs()) {
    values[in.get()] = inputs_[next++].view();
    there[in.get()] = place(in->type, {});
    uploads.push_back(there[in.get()]);
  }
  matches.reserve(1000);
  made.reserve(1000);
  for (const auto& op : function_.body().ops()) {
    for (const Operand& o : op->operands())
      for (const Value* v : o.values)
        if (v->constant() != nullptr && !v->constant()->tensor.empty_handle())
          values[v] = constants[v] = v->constant()->tensor.view();
    if (op->has_trait(Trait::constant)) continue;
    // The reference.
    Call all(*op, values);
    std::vector<TensorView> to;
    for (size_t i = 0; i < op->output_count(); i++) {
      const Type& t = op->output(i)->type;
      made.push_back(*Tensor::zeros(t.dtype(), t.shape()));
      to.push_back(made.back().view());
      values[op->output(i)] = to.back();
    }
    if (!check(op->version().reference(*all.call, to))) return r;
    kernel::apply_epilogues(op->epilogue, to[0]);
    // The device.
    calls.push_back(std::make_unique<Call>(*op, constants));
    Call& call = *calls.back();
    std::vector<Type> types;
    for (size_t i = 0; i < op->output_count(); i++) types.push_back(op->output(i)->type);
    std::vector<Layout> layouts;
    auto known = std::make_unique<bool[]>(call.values.size());
    for (size_t i = 0; i < call.values.size(); i++) {
      known[i] = constants.contains(call.values[i]);
      auto at = there.find(call.values[i]);
      layouts.push_back(at == there.end() ? Layout{} : at->second.layout);
    }
    kernel::MatchCall m{*call.call, types, layouts, op->epilogue};
    m.constant_args = {known.get(), call.values.size()};
    m.half.assign(op->output_count(), half_);
    m.stored_of = [&](int arg) -> std::optional<kernel::StoredConstant> {
      auto at = stored_.find(call.values[static_cast<size_t>(arg)]);
      return at == stored_.end() ? std::nullopt : std::optional(at->second);
    };
    matches.push_back(device.claim(m));
    kernel::KernelChoice* c = matches.back().choice.get();
    if (c == nullptr) {
      r.refusal = matches.back().refusal;
      return r;
    }
    r.kernels.emplace_back(c->kernel);
    std::vector<const TensorView*> held;
    for (const Value* v : call.values) held.push_back(constants.contains(v) ? &constants.at(v) : nullptr);
    Prepare prepare(memory, held);
    if (c->prepare && !check(c->prepare(prepare))) return r;
    kernel::RegionStep step;
    step.choice = c;
    step.call = &*call.call;
    step.epilogue = std::span<const Epilogue>(op->epilogue).subspan(c->epilogues);
    for (size_t i = 0; i < call.values.size(); i++) {
      BufferView v{call.values[i]->type.dtype(), call.values[i]->type.shape()};
      if (c->in_prepare_only.empty() || !c->in_prepare_only[i])
        v = as(call.values[i], c->in.empty() ? Layout{} : c->in[i]);
      step.in.push_back(v);
    }
    for (size_t i = 0; i < op->output_count(); i++) {
      const Layout made = c->out.empty() ? Layout{} : c->out[i];
      const int taken = i < c->updates.size() ? c->updates[i] : c->in_place;
      const Value* over = in_place_ && taken >= 0 ? call.values[static_cast<size_t>(taken)] : nullptr;
      const auto is_done = [&](const Op* user) { return user == op.get() || there.contains(user->output(0)); };
      if (over != nullptr && over->producer() != nullptr && over->type == types[i] &&
          std::all_of(over->users().begin(), over->users().end(), is_done) &&
          std::find(outputs.begin(), outputs.end(), over) == outputs.end() &&
          step.in[static_cast<size_t>(taken)].layout == made && !constants.contains(over))
        there[op->output(i)] = step.in[static_cast<size_t>(taken)];
      else
        there[op->output(i)] = place(types[i], made);
      step.out.push_back(there[op->output(i)]);
    }
    if (c->scratch > 0) step.scratch = place(Type::tensor(DType::int8, {static_cast<int64_t>(c->scratch)}), {});
    steps.push_back(std::move(step));
  }
  for (const Value* v : outputs) downloads.push_back(as(v, {}));

  auto queue = device.open_queue();
  if (!check(queue)) return r;
  auto submission = (*queue)->compile({steps, uploads, downloads, {}, is_shown_});
  if (!check(submission)) return r;
  r.shown = (*submission)->commands();
  for (int t = 0; t < times; t++) {
    for (size_t i = 0; i < inputs_.size(); i++)
      std::memcpy((*submission)->upload(i), inputs_[i].data(), inputs_[i].bytes());
    if (!check((*submission)->submit()) || !check((*submission)->wait())) return r;
  }
  for (size_t i = 0; i < outputs.size(); i++) {
    Tensor got = *Tensor::zeros(outputs[i]->type.dtype(), outputs[i]->type.shape());
    std::memcpy(got.mutable_data(), (*submission)->download(i), got.bytes());
    r.got.push_back(std::move(got));
    Tensor expected = *Tensor::zeros(outputs[i]->type.dtype(), outputs[i]->type.shape());
    std::memcpy(expected.mutable_data(), values.at(outputs[i]).data, expected.bytes());
    r.expected.push_back(std::move(expected));
  }
  r.times = (*submission)->times();
  r.counters = static_cast<devices::vulkan::VulkanSubmission&>(**submission).counters();
  auto context = devices::vulkan::Context::get();
  if (context.ok()) {
    EXPECT_EQ((*context)->instance().validation_messages(), 0u);
  }
  return r;
}

Region::Result Region::expect_same(const std::vector<Value*>& outputs, double tolerance) {
  for (Value* v : outputs)
    if (v == nullptr) return {};
  Result r = run(outputs);
  EXPECT_EQ(r.refusal, "");
  for (size_t o = 0; o < r.got.size(); o++) {
    const Tensor &a = r.got[o], &e = r.expected[o];
    double scale = 1;
    for (int64_t k = 0; k < e.count(); k++)
      if (const double v = std::fabs(load_f64(e.view(), k)); std::isfinite(v)) scale = std::max(scale, v);
    int wrong = 0;
    for (int64_t k = 0; k < e.count(); k++) {
      const double x = load_f64(a.view(), k), y = load_f64(e.view(), k);
      if ((std::isnan(x) && std::isnan(y)) || x == y) continue;
      if (half_ && std::isinf(x) && std::fabs(y) > 65504) continue;
      double allowed = is_float(e.dtype()) ? tolerance * scale : 0;
      // One unit in the last place: drivers may round float16 either way.
      if (half_ && is_float(e.dtype())) allowed += std::fabs(y) / 1024 + 6e-8;
      if (!(std::fabs(x - y) <= allowed) && wrong++ < 5)
        ADD_FAILURE() << r.kernels.back() << (half_ ? " (float16)" : "") << " output " << o << " [" << k
                      << "] expected " << y << ", got " << x;
    }
    if (wrong > 5) ADD_FAILURE() << wrong << " of " << e.count() << " wrong";
  }
  return r;
}

}  // namespace moka::vulkan_test
