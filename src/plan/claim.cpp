// SPDX-License-Identifier: Apache-2.0
#include "plan/claim.h"

#include <algorithm>

#include "base/watch.h"
#include "ir/fixed.h"
#include "plan/plan.h"
#include "plan/program_facts.h"
#include "plan/quantized_activation.h"
#include "plan/resolve.h"

namespace moka::plan {

namespace {

using kernel::Device;
using kernel::Layout;

/// See MatchCall::reshaped.
bool is_reshaped(const ir::Op& op) {
  for (size_t i = 0; i < op.output_count(); i++)
    for (const ir::Op* user : op.output(i)->users())
      if (!user->has_trait(ir::Trait::alias) && user->type_name() != "transpose") return false;
  return true;
}

/// One operation as devices are asked for it.
class Question {
 public:
  Question(const Resolved& resolved, const ResolvedOp& op, std::span<const Layout> layouts, const PlanOptions& options,
           const kernel::ProgramFacts* program = nullptr)
      : args_(resolved, op.in),
        call_(op.op->version(), op.op->name, args_.args, op.first),
        types_(types_of(resolved, op.out)),
        match_{call_, types_, layouts, op.op->epilogue} {
    call_.op = op.op;
    match_.constant_args = std::span<const bool>(args_.constant.get(), op.in.size());
    match_.reshaped = is_reshaped(*op.op);
    match_.program = program;
    match_.is_renewed = options.renewable && std::any_of(op.in.begin(), op.in.end(), [&](int i) {
                          return ir::is_from_parameter(*resolved.at(i).value);
                        });
    const auto value_of = [&resolved, &op](int arg) -> const ResolvedValue& {
      return resolved.at(op.in[static_cast<size_t>(arg)]);
    };
    match_.stored_of = [&options, value_of](int arg) -> std::optional<kernel::StoredConstant> {
      const ResolvedValue& v = value_of(arg);
      if (!v.is_constant() || !ConstantPool::is_constant(*v.value)) return std::nullopt;
      auto stored = options.constants->stored(*v.value);
      return stored.ok() ? std::move(*stored) : std::nullopt;
    };
    match_.quantized_activation_of = [value_of](int arg) { return quantized_activation_of(*value_of(arg).value); };
    for (size_t i = 0; i < op.op->output_count(); i++) match_.half.push_back(op.op->output(i)->half);
  }
  Question(const Question&) = delete;

  const kernel::MatchCall& match() const { return match_; }

 private:
  static std::vector<ir::Type> types_of(const Resolved& resolved, std::span<const int> values) {
    std::vector<ir::Type> types;
    for (int i : values) types.push_back(resolved.at(i).type);
    return types;
  }

  CallArgs args_;
  ir::OpCall call_;
  std::vector<ir::Type> types_;
  kernel::MatchCall match_;
};

/// The layouts that values have if everything runs on one device, as far as it can.
class LayoutsOn {
 public:
  LayoutsOn(const Resolved& resolved, const Device* device) : of_(resolved.values.size()), device_(device) {}

  Layout& operator[](int value) { return of_[static_cast<size_t>(value)]; }
  std::vector<Layout> of(std::span<const int> values) const {
    std::vector<Layout> out;
    for (int i : values) out.push_back(of_[static_cast<size_t>(i)]);
    return out;
  }
  void write(const ResolvedOp& op, const kernel::KernelChoice& choice) {
    for (size_t i = 0; i < std::min(op.out.size(), choice.out.size()); i++) (*this)[op.out[i]] = choice.out[i];
  }
  /// A view is row-major; in the memory of a device it stays half.
  void view(const ResolvedOp& op) { (*this)[op.out[0]].half = device_ != nullptr && (*this)[op.in[0]].half; }

 private:
  std::vector<Layout> of_;
  const Device* device_;
};

class Claimer {
 public:
  Claimer(const Resolved& resolved, const Plan* parent, const PlanOptions& options)
      : resolved_(resolved),
        states_(options.reuse_buffers ? resolved.states : kNoStates),
        options_(options),
        on_host_(resolved, nullptr) {
    claims_.hosts = host_devices(options);
    claims_.accelerators = accelerators(options);
    for (const Device* d : claims_.accelerators) on_.emplace_back(resolved, d);
    if (parent == nullptr) return;
    for (size_t i = 0; i < resolved.values.size(); i++) {
      const ResolvedValue& v = resolved.values[i];
      if (v.source != ResolvedValue::Source::outer) continue;
      const auto it = parent->sequence.place_of.find(v.value);
      if (it != parent->sequence.place_of.end())
        on_host_[static_cast<int>(i)] = parent->sequence.place(it->second).layout;
    }
  }

  Result<Claims> run() {
    for (const ResolvedOp& op : resolved_.ops) {
      MOKA_TRY(Watch::at("plan", claims_.ops.size(), resolved_.ops.size()));
      claims_.ops.push_back(MOKA_TRY(claim(op)));
    }
    return std::move(claims_);
  }

 private:
  Result<OpClaims> claim(const ResolvedOp& op) {
    OpClaims out;
    if (op.op->has_trait(ir::Trait::control)) return out;
    if (options_.reuse_buffers && op.is_alias) {
      out.is_view = true;
      on_host_.view(op);
      for (LayoutsOn& on : on_) on.view(op);
      return out;
    }
    if (is_on_state(op, out.is_view) && states_.views.contains(op.op) && !out.is_view) return out;
    out.host = MOKA_TRY(claim_in(resolved_, op, on_host_.of(op.in), hosts_for(claims_, *op.op, options_), options_));
    on_host_.write(op, *out.host->kernel.choice);
    if (out.is_view) return out;
    if (claims_.accelerators.empty() && !has_several_hosts()) return out;
    MOKA_TRY(ask_others(op, out));
    return out;
  }

  /// Whether the operation reads or writes a state. `is_view`: a device that keeps the state has nothing to do.
  bool is_on_state(const ResolvedOp& op, bool& is_view) {
    const bool writes = op.op->type_name() == "write_state";
    if (!writes && op.op->type_name() != "read_state") return false;
    const int state = op.in[0];
    if (claims_.accelerators.empty() || !states_.straight.contains(resolved_.at(state).value)) return true;
    const auto given = given_.find(state);
    const bool may_be_resident = options_.states_on_devices && resolved_.is_complete();
    is_view = writes || given != given_.end() || may_be_resident || states_.views.contains(op.op);
    if (writes)
      given_[state] = op.in[1];
    else if (given != given_.end())
      for (LayoutsOn& on : on_) on[op.out[0]] = on[given->second];
    return true;
  }

  bool has_several_hosts() const {
    return std::any_of(claims_.hosts.begin(), claims_.hosts.end(),
                       [&](const Device* d) { return d->unit() != claims_.hosts.back()->unit(); });
  }

  const kernel::ProgramFacts& facts() {
    if (!facts_) facts_ = program_facts(resolved_);
    return *facts_;
  }

  /// What a preview says of an operation that it takes.
  kernel::Advice advice_of(const Device& device, const ResolvedOp& op) {
    if (!device.is_preview()) return {};
    const std::vector<Layout> flat(op.in.size());
    return device.claim(Question(resolved_, op, flat, options_, &facts()).match()).advice;
  }

  Status ask_others(const ResolvedOp& op, OpClaims& out) {
    const Device* host = out.host->kernel.device;
    auto bids = std::make_shared<std::vector<Bid>>();
    bids->push_back({host, seconds(op, *host, out.host->kernel.choice->cost), {}, advice_of(*host, op)});
    for (size_t d = 0; d < claims_.accelerators.size(); d++) {
      const Device* device = claims_.accelerators[d];
      Claim claim = MOKA_TRY(claim_on(resolved_, op, on_[d].of(op.in), *device, options_));
      if (claim.kernel.choice) {
        bids->push_back({device, seconds(op, *device, claim.kernel.choice->cost), {}, {}});
        on_[d].write(op, *claim.kernel.choice);
      } else {
        const Refusal& r = claim.kernel.refusals.back();
        bids->push_back({device, 0, r.reason, r.advice});
      }
      out.others.push_back(std::move(claim));
    }
    // Another unit in host memory. The last device runs everything.
    const std::vector<Layout> flat(op.in.size());
    for (const Device* device : claims_.hosts) {
      if (device->unit() == host->unit() || device == options_.devices.back()) continue;
      kernel::Match m = device->claim(Question(resolved_, op, flat, options_, &facts()).match());
      bids->push_back({device, m.choice ? seconds(op, *device, m.choice->cost) : 0, m.choice ? "" : m.refusal,
                       std::move(m.advice)});
    }
    out.bids = std::move(bids);
    return {};
  }

  double seconds(const ResolvedOp& op, const Device& device, double cost) const {
    if (!options_.rates) return cost;
    // The host's kernels widen float16.
    const bool is_half = op.op->output_count() > 0 && op.op->output(0)->half && device.memory() != nullptr;
    return cost * options_.rates->of(device.name()).scale(kernel::is_product(op.op->type_name()), is_half);
  }

  const Resolved& resolved_;
  const StateUses& states_;
  const PlanOptions& options_;
  Claims claims_;
  LayoutsOn on_host_;
  std::vector<LayoutsOn> on_;           ///< parallel to Claims::accelerators
  std::unordered_map<int, int> given_;  ///< by state: the value that it was given last
  std::optional<kernel::ProgramFacts> facts_;
};

}  // namespace

std::vector<const Device*> host_devices(const PlanOptions& options) {
  std::vector<const Device*> out;
  for (const Device* d : options.devices)
    if (d->memory() == nullptr) out.push_back(d);
  return out;
}

std::vector<const Device*> accelerators(const PlanOptions& options) {
  std::vector<const Device*> out;
  for (const Device* d : options.devices)
    if (d->memory() != nullptr) out.push_back(d);
  return out;
}

bool applies_epilogues(const Device& device, const kernel::KernelChoice& choice,
                       std::span<const ir::Epilogue> epilogue) {
  return std::all_of(epilogue.begin() + static_cast<std::ptrdiff_t>(std::min(choice.epilogues, epilogue.size())),
                     epilogue.end(), [&](const ir::Epilogue& e) { return device.applies(e); });
}

Result<Claim> claim_in(const Resolved& resolved, const ResolvedOp& op, std::vector<Layout> layouts,
                       std::span<const Device* const> devices, const PlanOptions& options) {
  Claim out{{}, std::move(layouts)};
  out.kernel = MOKA_TRY(choose_kernel(Question(resolved, op, out.layouts, options).match(), options, devices));
  return out;
}

Result<Claim> claim_on(const Resolved& resolved, const ResolvedOp& op, std::vector<Layout> layouts,
                       const Device& device, const PlanOptions& options) {
  Claim out{{}, std::move(layouts)};
  out.kernel = MOKA_TRY(choose_on(device, Question(resolved, op, out.layouts, options).match(), options));
  return out;
}

std::vector<const Device*> hosts_for(const Claims& claims, const ir::Op& op, const PlanOptions& options) {
  std::vector<const Device*> hosts = claims.hosts;
  const Device* pin = options.pinned_device ? options.pinned_device(op) : nullptr;
  if (pin != nullptr) std::stable_partition(hosts.begin(), hosts.end(), [&](const Device* d) { return d == pin; });
  return hosts;
}

Result<Claims> claim(const Resolved& resolved, const Plan* parent, const PlanOptions& options) {
  return Claimer(resolved, parent, options).run();
}

}  // namespace moka::plan
