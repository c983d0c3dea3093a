// SPDX-License-Identifier: Apache-2.0
#include "ir/registered.h"

#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

using ir::Registered;
using ir::RegisteredCall;
using ir::RegisteredPlan;
using ir::TensorView;
using ir::Type;

constexpr size_t kMostInputs = 16;

bool is_numbers(const Type& t) { return t.is_tensor() && has_bytes(t.dtype()); }

/// The layout in which every input can arrive as it is, if one of them arrives blocked; else row-major.
Layout common_layout(const MatchCall& m, std::span<const Type> in) {
  if (m.outputs[0].dtype() != ir::DType::fp32 || m.outputs[0].rank() < 3) return {};
  for (size_t i = 0; i < in.size(); i++)
    if (!m.layouts[i].is_row_major() && !m.layouts[i].half) return m.layouts[i];
  return {};
}

/// Runs of elements in whatever layout they are, as cpu.unary does.
KernelChoice elementwise(const MatchCall& m, std::span<const Type> in,
                         const std::shared_ptr<const Registered>& instance) {
  const ir::Shape shape = m.outputs[0].shape();
  const Layout layout = common_layout(m, in);
  const Chunks chunks{storage_count(shape, layout)};
  const int64_t bytes = ir::bits(m.outputs[0].dtype()) / 8;
  const ir::DType dtype = m.outputs[0].dtype();
  KernelChoice c;
  c.in.assign(m.call.all_args().size(), {});
  for (size_t i = 0; i < in.size(); i++) c.in[i] = layout;
  c.out = {layout};
  c.in_place = 0;
  c.tiles = chunks.tiles();
  c.run = [=](const KernelArgs& args) -> Status {
    const int64_t first = chunks.first(args.begin), n = chunks.first(args.end) - first;
    const auto part = [&](const TensorView& v) {
      return TensorView{dtype, ir::Shape{n}, v.as<std::byte>() + first * bytes};
    };
    TensorView views[kMostInputs];
    for (size_t i = 0; i < in.size(); i++) views[i] = part(args.in[i]);
    const TensorView out = part(args.out[0]);
    MOKA_TRY(instance->run({{views, in.size()}, {&out, 1}, nullptr, 0, nullptr, 0, 0, 1, args.thread}));
    if (!layout.is_row_major()) clear_padding(shape, layout, args.out[0].as<float>(), first, first + n);
    return {};
  };
  return c;
}

KernelChoice whole(const MatchCall& m, std::span<const Type> in, const std::shared_ptr<const Registered>& instance,
                   const RegisteredPlan& plan) {
  KernelChoice c;
  const auto layout_of = [&](const Type& t) {
    return plan.channels_last && is_numbers(t) && t.rank() >= 3 ? Layout::channels_last() : Layout{};
  };
  if (plan.channels_last) {
    c.in.assign(m.call.all_args().size(), {});
    for (size_t i = 0; i < in.size(); i++) c.in[i] = layout_of(in[i]);
    for (const Type& t : m.outputs) c.out.push_back(layout_of(t));
  }
  c.in_place = plan.in_place;
  c.tiles = plan.tiles;
  c.scratch = plan.scratch;
  c.thread_scratch = plan.thread_scratch;
  c.run = [instance, count = in.size(), scratch = plan.scratch, own = plan.thread_scratch](const KernelArgs& args) {
    return instance->run({args.in.first(count), args.out, scratch > 0 ? args.scratch : nullptr, scratch,
                          own > 0 ? args.own(args.thread) : nullptr, own, args.begin, args.end, args.thread});
  };
  return c;
}

Match match(const MatchCall& m) {
  auto instance = ir::registered_instance(m.call);
  if (!instance.ok()) return Match::no(instance.error().message());
  // The inputs are the first parameter.
  std::vector<Type> in;
  for (const ir::Arg& a : m.call.args("inputs")) in.push_back(*a.type);
  auto plan = (*instance)->plan(in, m.outputs, m.threads);
  if (!plan.ok()) return Match::no(plan.error().to_string());
  const bool flat = plan->elementwise && in.size() <= kMostInputs && is_numbers(m.outputs[0]);
  KernelChoice c = flat ? elementwise(m, in, *instance) : whole(m, in, *instance, *plan);
  c.kernel = "cpu.registered";
  c.note = (*instance)->what();
  c.cost = plan->seconds > 0 ? plan->seconds : cost_of(m, 0, traffic(m));
  return Match::yes(std::move(c));
}

constexpr std::string_view kOps[] = {"moka_registered"};

}  // namespace

KernelFamily family_registered() {
  static const KernelDef defs[] = {{"cpu.registered", {kOps[0]}, match}};
  return {0, defs};
}

}  // namespace moka::devices::cpu
