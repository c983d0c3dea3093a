// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernel/memory.h"
#include "plan/draft.h"

namespace moka::plan {

Status Drafter::draft_alias(size_t n, int in) {
  const ResolvedOp& op = resolved_.ops[n];
  // A view stays in the memory of its input unless the operations around it are elsewhere.
  const Device* device = assignment_.is_on_host() ? place(in).device : assignment_.device[n];
  if (place(in).is<Object>() || place(in).is<Constant>()) device = place(in).device;
  Layout flat;
  flat.half = device != nullptr && place(in).layout.half;
  const int from = MOKA_TRY(moved(in, device, flat));
  Place p = place(from);
  p.value = op.op->output();
  p.type = resolved_.at(op.out[0]).type;
  p.layout = flat;
  if (Constant* c = std::get_if<Constant>(&p.storage)) c->tensor = c->tensor.reshaped(p.type.shape());
  add_place(std::move(p));
  return {};
}

std::vector<kernel::Layout> Drafter::layouts(std::span<const int> in, const Device* memory) {
  std::vector<Layout> out;
  for (int i : in) out.push_back(place(i).device == memory ? place(i).layout : Layout{});
  return out;
}

/// A claim holds for the layouts that it was made in. Where the assignment brings an input in another one, the device
/// is asked again.
Result<ChosenKernel> Drafter::choose_on_host(size_t n, std::span<const int> in) {
  const std::optional<Claim>& claim = claims_.ops[n].host;
  std::vector<Layout> actual = layouts(in, nullptr);
  if (claim && claim->layouts == actual) return claim->kernel;
  const ResolvedOp& op = resolved_.ops[n];
  return MOKA_TRY(claim_in(resolved_, op, std::move(actual), hosts_for(claims_, *op.op, options_), options_)).kernel;
}

Result<std::shared_ptr<kernel::KernelChoice>> Drafter::choose(size_t n, std::span<const int> in, KernelCall& step) {
  const ir::Op& op = *resolved_.ops[n].op;
  const OpClaims& claims = claims_.ops[n];
  std::vector<Refusal> refusals;
  ChosenKernel chosen;
  if (const Device* wanted = assignment_.device[n]; wanted != nullptr) {
    const auto d = std::find(claims_.accelerators.begin(), claims_.accelerators.end(), wanted);
    std::vector<Layout> actual = layouts(in, wanted);
    // No device was asked for a read that would be a view if the state were in the device's memory.
    const Claim* claim =
        claims.others.empty() ? nullptr : &claims.others[static_cast<size_t>(d - claims_.accelerators.begin())];
    chosen = claim != nullptr && claim->layouts == actual
                 ? claim->kernel
                 : MOKA_TRY(claim_on(resolved_, resolved_.ops[n], std::move(actual), *wanted, options_)).kernel;
    if (!chosen.choice) refusals = std::move(chosen.refusals);
  }
  if (!chosen.choice) chosen = MOKA_TRY(choose_on_host(n, in));
  const Device* pin = options_.pinned_device ? options_.pinned_device(op) : nullptr;
  step.device = chosen.device;
  step.threads = chosen.threads;
  step.refusals = std::move(refusals);
  std::move(chosen.refusals.begin(), chosen.refusals.end(), std::back_inserter(step.refusals));
  step.by = chosen.by == ChosenBy::rule && chosen.device == pin ? ChosenBy::pin : chosen.by;
  step.measurement = std::move(chosen.measurement);
  step.bids = claims.bids;
  if (options_.strict && pin != nullptr && step.device != pin)
    return fail(ErrorCode::unsupported, "operation '", op.name, "' (", op.type_name(), ") is pinned to device '",
                pin->name(), "', which refuses it: ", refusal_of(step, *pin));
  return std::move(chosen.choice);
}

void Drafter::add_preparation(const KernelCall& step, std::shared_ptr<kernel::KernelChoice> choice,
                              std::span<const int> in) {
  if (!choice->prepare) return;
  Preparation& p = draft_.preparations.emplace_back(Preparation{step.op, step.device, std::move(choice), {}});
  for (int i : in) {
    const Place& from = place(i);
    if (const Constant* c = std::get_if<Constant>(&from.storage))
      p.inputs.push_back({from.value, pooled(from) != nullptr, c->tensor});
    else
      p.inputs.emplace_back();
  }
}

Status Drafter::move_inputs(const kernel::KernelChoice& choice, const Device* memory, std::vector<int>& in) {
  for (size_t i = 0; i < in.size(); i++) {
    if (i < choice.in_prepare_only.size() && choice.in_prepare_only[i])
      in[i] = prepared(in[i]);
    else if (!place(in[i]).is<Object>() && place(in[i]).type.is_tensor())
      in[i] = MOKA_TRY(moved(in[i], memory, i < choice.in.size() ? choice.in[i] : Layout{}));
  }
  return {};
}

Status Drafter::add_results(const ResolvedOp& op, const kernel::KernelChoice& choice, bool cut, KernelCall& step) {
  const Device* memory = step.device->memory() != nullptr ? step.device : nullptr;
  for (size_t i = 0; i < op.out.size(); i++) {
    step.out.push_back(add_result(op.out[i], i < choice.out.size() ? choice.out[i] : Layout{}));
    Place& out = place(step.out.back());
    out.device = memory;
    if (!cut) continue;
    const Place& whole = place(step.in[static_cast<size_t>(choice.cuts[i].in)]);
    place_in(out, whole, choice.cuts[i].offset);
  }
  if (memory != nullptr) return {};
  for (size_t i = 0; i < step.out.size(); i++) write_in_state(op, choice, step.in, i, step.out[i]);
  if (choice.epilogues < op.op->epilogue.size() && !choice.out.empty() && !choice.out[0].is_row_major())
    return fail(ErrorCode::internal, "kernel ", choice.kernel, " leaves fused functions in layout ",
                to_string(choice.out[0]));
  return {};
}

Status Drafter::draft_call(size_t n) {
  const ResolvedOp& op = resolved_.ops[n];
  std::vector<int> in = homes(op.in);
  if (on_state(op, in)) return {};
  if (options_.reuse_buffers && op.is_alias) return draft_alias(n, in[0]);
  KernelCall step;
  step.op = op.op;
  step.first_arg = op.first;
  std::shared_ptr<kernel::KernelChoice> choice = MOKA_TRY(choose(n, in, step));
  step.choice = choice;
  add_preparation(step, choice, in);
  const Device* memory = step.device->memory() != nullptr ? step.device : nullptr;
  MOKA_TRY(move_inputs(*choice, memory, in));
  step.in = std::move(in);
  const bool cut = can_cut(*choice, step.in);
  MOKA_TRY(add_results(op, *choice, cut, step));
  if (cut)
    add_step(Placed{std::move(step)});
  else
    add_step(Run{std::move(step)});
  return {};
}

/// A state may be written while parts of it are still needed.
bool Drafter::can_cut(const kernel::KernelChoice& choice, std::span<const int> in) {
  return options_.reuse_buffers && !choice.cuts.empty() &&
         std::all_of(choice.cuts.begin(), choice.cuts.end(), [&](const kernel::Part& c) {
           const Place& root = place(place(in[static_cast<size_t>(c.in)]).root);
           return root.type.is_tensor() && (root.is<InArena>() || root.is<External>());
         });
}

}  // namespace moka::plan
