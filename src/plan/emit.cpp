#include <algorithm>

#include "kernel/memory.h"
#include "plan/planner.h"
#include "plan/quantized_activation.h"

namespace moka::plan {

namespace {

/// See MatchCall::reshaped.
bool is_reshaped(const ir::Op& op) {
  for (size_t i = 0; i < op.output_count(); i++)
    for (const ir::Op* user : op.output(i)->users())
      if (!user->has_trait(ir::Trait::alias) && user->type_name() != "transpose") return false;
  return true;
}

bool has_several_units(std::span<const kernel::Device* const> devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const kernel::Device* d) { return d->unit() != devices.back()->unit(); });
}

}  // namespace

bool Planner::is_by_value(const ir::Value& state) const {
  if (!states_.straight.contains(&state)) return false;
  if (placement_ == nullptr) return draft_ != nullptr;
  return std::any_of(state.users().begin(), state.users().end(),
                     [&](const ir::Op* user) { return placement_->memory_of(*user) != nullptr; });
}

bool Planner::by_value(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types) {
  if (op.type_name() == "write_state") {
    given_[in[0]] = in[1];
    return true;
  }
  const auto given = given_.find(in[0]);
  // A state in host memory is written at the end, when only outputs still read it. A state on a device is written after
  // all of its readers.
  const bool may_be_resident = place(in[0]).device != nullptr || (draft_ != nullptr && options_.states_on_devices);
  if (given == given_.end() && !may_be_resident && !states_.views.contains(&op)) return false;
  const Place& from = place(given == given_.end() ? in[0] : given->second);
  Place p = from;
  p.value = op.output();
  p.type = types[0];
  add_place(std::move(p));
  return true;
}

void Planner::place_states() {
  if (placement_ == nullptr || !placement_->is_whole || !options_.states_on_devices) return;
  for (int i : plan_->inputs) {
    Place& p = place(i);
    if (!p.type.is_state() || !states_.straight.contains(p.value)) continue;
    const ir::Op* first = nullptr;
    for (const auto& op : block_.ops())
      if (first == nullptr && std::count(p.value->users().begin(), p.value->users().end(), op.get()) > 0)
        first = op.get();
    const Device* device = first == nullptr ? nullptr : placement_->memory_of(*first);
    const ir::Type& t = p.type.element();
    // The device must be able to copy the last value to the state without a conversion.
    if (device != nullptr && device->convert(t.dtype(), t.shape(), {}, {}).choice) p.device = device;
  }
}

void Planner::copy_on(const Device& device, int from, int to) {
  Step s;
  s.kind = Step::Kind::convert;
  s.region = region_of(device);
  s.device = &device;
  s.choice = device.convert(place(to).type.dtype(), place(to).type.shape(), {}, {}).choice;
  s.in = {from};
  s.out = {to};
  if (place(to).storage == Storage::arena) place(to).region = s.region;
  add_step(std::move(s));
}

Status Planner::write_states(bool on_devices) {
  const auto copy = [&](int from, int to) {
    if (const Device* device = place(to).device; device != nullptr) return copy_on(*device, from, to);
    Step s;
    s.kind = Step::Kind::convert;
    s.in = {from};
    s.out = {to};
    add_step(std::move(s));
  };
  const auto is_now = [&](int state) { return (place(state).device != nullptr) == on_devices; };
  // Values that are stored in another state are copied out before that state is written.
  for (auto& [state, given] : given_) {
    const int held = place(given).root;
    const bool is_held = held != place(state).root && given_.contains(held);
    if (!is_now(state) && !(is_held && is_now(held))) continue;
    const Device* device = place(state).device;
    given = MOKA_TRY(bring(given, device, {}));
    const int root = place(given).root;
    if (root == place(state).root || !given_.contains(root)) continue;
    Place p;
    p.type = place(given).type;
    p.device = device;
    const int apart = add_place(std::move(p));
    copy(given, apart);
    given = apart;
  }
  for (auto it = given_.begin(); it != given_.end();) {
    const auto [state, given] = *it;
    if (!is_now(state)) {
      ++it;
      continue;
    }
    it = given_.erase(it);
    if (place(given).root == place(state).root) continue;
    Place p;
    p.type = place(given).type;
    p.device = place(state).device;
    p.storage = place(state).storage;
    p.root = place(state).root;
    copy(given, add_place(std::move(p)));
  }
  return {};
}

/// Reads that are views of the state, and writes of a value that is already in the state. They need no step.
bool Planner::on_state(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types) {
  const bool reads = op.type_name() == "read_state";
  if ((reads || op.type_name() == "write_state") && is_by_value(*place(in[0]).value)) return by_value(op, in, types);
  if (op.type_name() == "write_state") return place(in[0]).root == place(in[1]).root;
  if (!states_.views.contains(&op)) return false;
  Place p;
  p.value = op.output();
  p.type = types[0];
  p.storage = place(in[0]).storage;
  p.root = place(in[0]).root;
  add_place(std::move(p));
  return true;
}

bool Planner::is_alias(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types) {
  return options_.reuse_buffers && op.has_trait(ir::Trait::alias) && op.epilogue.empty() && types.size() == 1 &&
         place(in[0]).type.is_tensor() && types[0].dtype() == place(in[0]).type.dtype() &&
         types[0].shape().count() == place(in[0]).type.shape().count();
}

Status Planner::emit_alias(const ir::Op& op, int in, const ir::Type& type) {
  // A view stays in the memory of its input unless the operations around it are elsewhere.
  const Device* device = place(in).device;
  if (placement_ != nullptr) device = placement_->memory_of(op);
  if (place(in).storage == Storage::object || place(in).storage == Storage::constant) device = place(in).device;
  Layout flat;
  flat.half = device != nullptr && place(in).layout.half;
  const int from = MOKA_TRY(bring(in, device, flat));
  Place p;
  p.value = op.output();
  p.type = type;
  p.layout = flat;
  p.device = place(from).device;
  p.region = place(from).region;
  p.storage = place(from).storage;
  p.root = place(from).root;
  p.delta = place(from).delta;
  p.object = place(from).object;
  if (p.storage == Storage::constant) p.constant = place(from).constant.reshaped(type.shape());
  p.buffer = place(from).buffer;
  add_place(std::move(p));
  return {};
}

Status Planner::add_to_draft(DraftOp op, std::span<const int> in, std::span<const ir::Type> types) {
  if (draft_ == nullptr) return {};
  const auto note = [&](const ir::Value* v, const ir::Type& t) -> Status {
    if (v == nullptr || !t.is_tensor() || t.dtype() == ir::DType::string) return {};
    draft_->bytes[v] = MOKA_TRY(kernel::storage_bytes(t.dtype(), t.shape(), {}));
    return {};
  };
  for (int i : in)
    if (place(i).storage != Storage::constant) MOKA_TRY(note(place(i).value, place(i).type));
  for (size_t i = 0; i < types.size(); i++) MOKA_TRY(note(op.op->output(i), types[i]));
  draft_->ops.push_back(std::move(op));
  return {};
}

std::vector<Bid> Planner::bids(const kernel::MatchCall& match, const ChosenKernel& host) {
  const std::string& type = match.call.version().def->name;
  const bool is_half = match.may_be_half(0);
  const auto seconds = [&](const Device& device, double cost) {
    if (!options_.rates) return cost;
    // The host's kernels widen float16.
    return cost *
           options_.rates->of(device.name()).scale(kernel::is_product(type), is_half && device.memory() != nullptr);
  };
  std::vector<Bid> out{{host.device, seconds(*host.device, host.choice->cost), {}, {}}};
  const std::vector<Layout> flat(match.layouts.size());
  kernel::MatchCall call = match;
  call.layouts = flat;
  std::vector<const Device*> others = accelerators_;
  // Another unit in host memory. The last device runs everything.
  for (const Device* d : hosts_)
    if (d->unit() != host.device->unit() && d != options_.devices.back()) others.push_back(d);
  for (const Device* device : others) {
    kernel::Match m = device->claim(call);
    if (m.choice && device->memory() != nullptr && !applies_epilogues(*device, *m.choice, match.epilogue))
      m = kernel::Match::no(kLeftEpilogue);
    if (m.choice)
      out.push_back({device, seconds(*device, m.choice->cost), {}, {}});
    else
      out.push_back({device, 0, std::move(m.refusal), std::move(m.advice)});
  }
  return out;
}

Result<std::shared_ptr<kernel::KernelChoice>> Planner::choose(const ir::Op& op, std::span<const int> in,
                                                              std::span<const uint32_t> first,
                                                              const std::vector<ir::Type>& types, Step& step) {
  const auto chosen_from = [&](std::span<const Device* const> devices) -> Result<ChosenKernel> {
    const Device* memory = devices[0]->memory() != nullptr ? devices[0] : nullptr;
    CallArgs c = call_args(in, memory);
    ir::OpCall call(op.version(), op.name, c.args, first);
    call.op = &op;
    kernel::MatchCall match{call, types, c.layouts, op.epilogue};
    match.constant_args = std::span<const bool>(c.constant.get(), in.size());
    match.reshaped = is_reshaped(op);
    match.stored_of = [&](int arg) -> std::optional<kernel::StoredConstant> {
      const ir::Value* v = pooled(in[static_cast<size_t>(arg)]);
      if (v == nullptr) return std::nullopt;
      auto stored = options_.constants->stored(*v);
      return stored.ok() ? std::move(*stored) : std::nullopt;
    };
    match.quantized_activation_of = [&](int arg) -> std::optional<kernel::QuantizedActivation> {
      const ir::Value* v = place(in[static_cast<size_t>(arg)]).value;
      return v == nullptr ? std::nullopt : quantized_activation_of(*v);
    };
    for (size_t i = 0; i < op.output_count(); i++) match.half.push_back(op.output(i)->half);
    ChosenKernel chosen = MOKA_TRY(choose_kernel(match, options_, devices));
    if (draft_ != nullptr) MOKA_TRY(add_to_draft({&op, bids(match, chosen)}, in, types));
    if (placement_ == nullptr && draft_ == nullptr && has_several_units(devices))
      step.bids = std::make_shared<std::vector<Bid>>(bids(match, chosen));
    return chosen;
  };

  std::vector<Refusal> refusals;
  const Device* pin = options_.pinned_device ? options_.pinned_device(op) : nullptr;
  const bool is_free = pin == nullptr || pin->memory() != nullptr;
  const Device* wanted = placement_ != nullptr ? placement_->of(op) : is_free ? nullptr : pin;
  Result<ChosenKernel> chosen = fail(ErrorCode::internal, "no device is asked");
  if (wanted != nullptr && wanted->memory() != nullptr) {
    chosen = chosen_from(std::span(&wanted, 1));
    if (!chosen.ok()) {
      if (chosen.error().code() != ErrorCode::unsupported) return std::move(chosen).error();
      refusals.push_back({std::string(wanted->name()), chosen.error().message(), {}});
    }
  }
  if (!chosen.ok() && wanted != nullptr && wanted->memory() == nullptr) {
    std::vector<const Device*> wanted_first = hosts_;
    std::stable_partition(wanted_first.begin(), wanted_first.end(), [&](const Device* d) { return d == wanted; });
    chosen = MOKA_TRY(chosen_from(wanted_first));
  } else if (!chosen.ok()) {
    chosen = MOKA_TRY(chosen_from(hosts_));
  }
  step.device = chosen->device;
  step.threads = chosen->threads;
  step.refusals = std::move(refusals);
  std::move(chosen->refusals.begin(), chosen->refusals.end(), std::back_inserter(step.refusals));
  step.by = chosen->by == ChosenBy::rule && chosen->device == pin ? ChosenBy::pin : chosen->by;
  step.measurement = std::move(chosen->measurement);
  if (placement_ != nullptr)
    if (auto bids = placement_->bids.find(&op); bids != placement_->bids.end()) step.bids = bids->second;
  if (options_.strict && draft_ == nullptr && pin != nullptr && step.device != pin)
    return fail(ErrorCode::unsupported, "operation '", op.name, "' (", op.type_name(), ") is pinned to device '",
                pin->name(), "', which refuses it: ", refusal_of(step, *pin));
  return std::move(chosen->choice);
}

Status Planner::emit(const ir::Op& op, std::vector<int> in, std::vector<uint32_t> first,
                     const std::vector<ir::Type>& types) {
  if (on_state(op, in, types)) return add_to_draft({.op = &op, .view = is_by_value(*place(in[0]).value)}, in, types);
  if (is_alias(op, in, types)) {
    MOKA_TRY(add_to_draft({.op = &op, .view = true}, in, types));
    return emit_alias(op, in[0], types[0]);
  }

  Step step;
  step.op = &op;
  std::shared_ptr<kernel::KernelChoice> choice = MOKA_TRY(choose(op, in, first, types, step));
  const Device* memory = step.device->memory() != nullptr ? step.device : nullptr;
  if (choice->prepare) {
    Preparation& p = preparations_.emplace_back(Preparation{&op, step.device, choice, {}});
    for (int i : in) {
      const Place& from = place(i);
      if (from.storage != Storage::constant)
        p.inputs.emplace_back();
      else
        p.inputs.push_back({from.value, pooled(i) != nullptr, from.constant});
    }
  }

  for (size_t i = 0; i < in.size(); i++) {
    bool only_prepared = i < choice->in_prepare_only.size() && choice->in_prepare_only[i];
    Layout wanted = i < choice->in.size() ? choice->in[i] : Layout{};
    if (only_prepared)
      in[i] = prepared(in[i]);
    else if (place(in[i]).storage == Storage::object || !place(in[i]).type.is_tensor())
      continue;
    else
      in[i] = MOKA_TRY(bring(in[i], memory, wanted));
  }
  const bool cut = can_cut(*choice, in);
  if (memory != nullptr && !cut) step.region = region_of(*memory);
  for (size_t i = 0; i < types.size(); i++) {
    step.out.push_back(add_result(op.output(i), types[i], i < choice->out.size() ? choice->out[i] : Layout{}));
    Place& out = place(step.out.back());
    out.device = memory;
    out.region = step.region;
    if (!cut) continue;
    const Place& whole = place(in[static_cast<size_t>(choice->cuts[i].in)]);
    place_in(out, whole, choice->cuts[i].offset);
    out.region = whole.region;
  }
  if (cut) step.kind = Step::Kind::placed;
  if (const ir::Value* state = states_.state_of(op);
      memory == nullptr && state != nullptr && !is_by_value(*state) && choice->in_place >= 0 && types.size() == 1) {
    const Place& x = place(in[static_cast<size_t>(choice->in_place)]);
    const Place& s = place(MOKA_TRY(find(state)));
    const auto readers = std::count_if(in.begin(), in.end(), [&](int i) { return place(i).root == s.root; });
    if (x.root == s.root && x.type == types[0] && readers == 1) {
      Place& out = place(step.out[0]);
      out.storage = s.storage;
      out.root = s.root;
    }
  }
  if (memory == nullptr && choice->epilogues < op.epilogue.size() && !choice->out.empty() &&
      !choice->out[0].is_row_major())
    return fail(ErrorCode::internal, "kernel ", choice->kernel, " leaves fused functions in layout ",
                to_string(choice->out[0]));
  const size_t scratch = choice->scratch;
  step.in = std::move(in);
  step.first_arg = std::move(first);
  step.choice = std::move(choice);
  add_step(std::move(step), scratch);
  return {};
}

/// A state may be written while parts of it are still needed.
bool Planner::can_cut(const kernel::KernelChoice& choice, std::span<const int> in) {
  return options_.reuse_buffers && !choice.cuts.empty() &&
         std::all_of(choice.cuts.begin(), choice.cuts.end(), [&](const kernel::Part& c) {
           const Place& root = place(place(in[static_cast<size_t>(c.in)]).root);
           return root.type.is_tensor() && (root.storage == Storage::arena || root.storage == Storage::external);
         });
}

}  // namespace moka::plan
