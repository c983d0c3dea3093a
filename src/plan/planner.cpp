#include "plan/planner.h"

#include <algorithm>

#include "plan/late.h"

namespace moka::plan {

namespace {

constexpr size_t kFoldBytes = 64 * 1024;

/// Whether a place can be made for the type. Sizes of lists and dictionaries may be known only at run time.
bool is_plannable(const ir::Type& t) { return t.is_tensor() ? t.is_concrete() : t.is_list() || t.is_dict(); }
bool all_plannable(std::span<const ir::Type> types) { return std::all_of(types.begin(), types.end(), is_plannable); }

}  // namespace

Result<bool> Planner::stop_at(const ir::Op& op, std::vector<int> in, std::vector<uint32_t> first) {
  if (inferred_ != nullptr) return false;
  for (int i : plan_->inputs)
    if (place(i).device != nullptr)
      return fail(ErrorCode::internal, "a plan with states in the memory of a device ends at '", op.name, "'");
  for (int& i : in) i = MOKA_TRY(on_host(i));
  for (const ir::Value* v : used_from(block_, op)) MOKA_TRY(return_to_host(v));
  MOKA_TRY(write_states(false));
  close_region();
  plan_->pending = &op;
  plan_->pending_step.op = &op;
  plan_->pending_step.in = std::move(in);
  plan_->pending_step.first_arg = std::move(first);
  plan_->continuations = std::make_unique<PlanCache>();
  return false;
}

Result<bool> Planner::plan_op(const ir::Op& op, const std::vector<ir::Type>* known_types) {
  if (op.has_trait(ir::Trait::constant)) return true;
  if (inferred_ != nullptr) ++*inferred_;
  if (op.has_trait(ir::Trait::control)) return plan_control(op);
  const ir::OpVersion& version = op.version();
  std::vector<uint32_t> first;
  std::vector<int> in = MOKA_TRY(operands(op, first));
  bool foldable = version.reference && op.output_count() > 0 && !op.has_trait(ir::Trait::random) &&
                  !op.has_trait(ir::Trait::stateful);
  std::vector<ir::Type> types;
  bool all_known, all_constant;
  {
    CallArgs c = call_args(in);
    all_known = c.all_known || (op.has_trait(ir::Trait::types_only) && c.all_shapes_known);
    all_constant = c.all_constant;
    if (known_types != nullptr) {
      types = *known_types;
    } else {
      ir::OpCall call(version, op.name, c.args, first);
      call.op = &op;
      types = MOKA_TRY(version.infer(call));
    }
  }
  if (types.size() != op.output_count())
    return fail(ErrorCode::internal, "operation '", op.name, "' (", op.type_name(), ") infers ", types.size(),
                " outputs, has ", op.output_count());
  size_t bytes = 0;
  bool tensors = true;
  for (const ir::Type& t : types) {
    tensors &= t.is_tensor();
    if (t.is_tensor() && t.is_concrete()) {
      size_t b = MOKA_TRY_IN(ir::storage_bytes(t.dtype(), t.shape()), cat("operation '", op.name, "'"));
      if (b > kLargestValue) return fail(ErrorCode::out_of_budget, "operation '", op.name, "' makes a ", t);
      bytes += b;
    }
  }

  if (foldable && all_constant && all_plannable(types) && tensors && op.epilogue.empty() &&
      ConstantPool::is_constant(*op.output())) {
    for (size_t i = 0; i < types.size(); i++) {
      Place p;
      p.value = op.output(i);
      p.type = types[i];
      p.storage = Storage::constant;
      int added = add_place(std::move(p));
      if (bytes <= kEagerConstantBytes) MOKA_TRY_IN(materialize(added), cat("operation '", op.name, "'"));
    }
    return true;
  }
  if (foldable && all_known && tensors && all_plannable(types) && op.epilogue.empty() &&
      bytes <= (inferred_ != nullptr ? kEagerConstantBytes : kFoldBytes)) {
    MOKA_TRY_IN(fold(op, in, types), cat("operation '", op.name, "'"));
    return true;
  }
  if (!all_plannable(types)) {
    // Constants that were left unexpanded may decide a shape. They are expanded now, and inference runs again.
    bool expanded = false;
    for (int i : in)
      if (place(i).storage == Storage::constant && place(i).constant.empty_handle() && may_expand(place(i))) {
        MOKA_TRY(materialize(i));
        expanded = true;
      }
    if (expanded) return plan_op(op, known_types);
    return stop_at(op, std::move(in), std::move(first));
  }
  if (inferred_ == nullptr)
    MOKA_TRY(emit(op, std::move(in), std::move(first), types));
  else
    for (size_t i = 0; i < types.size(); i++) add_result(op.output(i), types[i], {});
  return true;
}

Status Planner::finish_outputs() {
  // The old content of states is read before the states are written.
  for (const ir::Value* v : block_.outputs())
    if (const int i = MOKA_TRY(find(v)); place(i).device != nullptr && place(i).storage == Storage::external)
      MOKA_TRY(on_host(i));
  MOKA_TRY(write_states(true));
  std::set<int> taken;
  for (size_t k = 0; k < block_.outputs().size(); k++) {
    int i = MOKA_TRY(find(block_.outputs()[k]));
    if (place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
    const Place& root = place(place(i).root);
    const bool object = is_object(place(i).type);
    // A list that a loop passes on unchanged stays in place.
    const bool stays = object && k < plan_->inputs.size() && place(i).root == plan_->inputs[k];
    if (own_outputs_ && !stays && (root.storage == Storage::external || !taken.insert(place(i).root).second)) {
      Place copy;
      copy.type = place(i).type;
      if (object) copy.storage = Storage::object;
      Step s;
      s.kind = Step::Kind::convert;
      s.in = {i};
      i = add_place(std::move(copy));
      s.out = {i};
      add_step(std::move(s));
    }
    plan_->outputs.push_back(i);
  }
  MOKA_TRY(write_states(false));
  close_region();
  return {};
}

void Planner::find_planes() {
  const auto is_read = [&](int input) {
    if (!plan_->is_complete()) return true;
    const auto reads = [&](int i) { return place(i).root == input; };
    return std::any_of(plan_->outputs.begin(), plan_->outputs.end(), reads) ||
           std::any_of(plan_->steps.begin(), plan_->steps.end(), [&](const Step& s) {
             return s.blocks[0] != nullptr || std::any_of(s.in.begin(), s.in.end(), reads);
           });
  };
  for (PixelInput& p : plan_->pixels) p.planes_read = is_read(plan_->inputs[p.input]);
}

Status Planner::download_all() {
  close_region();
  for (int i = 0; i < static_cast<int>(plan_->places.size()); i++) {
    const Place& p = place(i);
    if (p.device != nullptr && p.storage == Storage::arena && p.value != nullptr && p.value->producer() != nullptr)
      MOKA_TRY(bring(i, nullptr, p.layout));
  }
  return {};
}

Result<bool> Planner::walk(const ir::Op* from, std::span<const ir::Type> pending_types) {
  if (from == nullptr && plan_->parent == nullptr && options_.reuse_buffers) states_ = uses_of_states(block_);
  place_states();
  auto it = block_.ops().begin();
  if (from != nullptr) {
    while (it->get() != from) ++it;
    // Control flow has already run, so its outputs are inputs of this plan.
    const std::vector<ir::Type> known(pending_types.begin(), pending_types.end());
    if (!from->has_trait(ir::Trait::control) && !MOKA_TRY(plan_op(*from, &known))) return false;
    ++it;
  }
  if (placement_ != nullptr) {
    for (auto b = block_.ops().begin(); b != it; ++b) planned_.insert(b->get());
    for (size_t i = 0; i < placement_->order.size(); i++) {
      // A region is submitted as soon as it is complete.
      if (i > 0 && placement_->region[i] != placement_->region[i - 1]) close_region();
      if (!MOKA_TRY(plan_with_operands(*placement_->order[i]))) return false;
    }
  }
  for (; it != block_.ops().end(); ++it)
    if (!planned_.contains(it->get()) && !MOKA_TRY(plan_op(**it, nullptr))) return false;
  return true;
}

Result<bool> Planner::plan_with_operands(const ir::Op& op) {
  std::vector<const ir::Op*> pending{&op};
  while (!pending.empty()) {
    const ir::Op* next = pending.back();
    const size_t before = pending.size();
    auto need = [&](const ir::Value* v) {
      const ir::Op* p = v->producer();
      if (p != nullptr && p->parent() == &block_ && !planned_.contains(p)) pending.push_back(p);
    };
    if (!planned_.contains(next)) {
      for (const ir::Operand& o : next->operands())
        for (const ir::Value* v : o.values) need(v);
      for (size_t b = 0; b < next->block_count(); b++)
        for (const ir::Value* v : free_values(*next->block(b))) need(v);
    }
    if (pending.size() > before) continue;
    pending.pop_back();
    if (planned_.insert(next).second && !MOKA_TRY(plan_op(*next, nullptr))) return false;
  }
  return true;
}

Status Planner::draft(const ir::Op* from, std::span<const ir::Type> pending_types, Draft& draft) {
  draft_ = &draft;
  return MOKA_TRY(walk(from, pending_types)), Status{};
}

Result<std::shared_ptr<const Plan>> Planner::run(const ir::Op* from, std::span<const ir::Type> pending_types) {
  const bool is_complete = MOKA_TRY(walk(from, pending_types));
  if (options_.observed) MOKA_TRY(download_all());
  if (is_complete) MOKA_TRY(finish_outputs());
  if (placement_ != nullptr) plan_->decision = placement_->decision;
  for (Place& p : plan_->places)
    if (p.storage == Storage::arena && p.type.is_tensor())
      p.bytes = MOKA_TRY(kernel::storage_bytes(p.type.dtype(), p.type.shape(), p.layout));
  if (options_.reuse_buffers) place_parts(*plan_);
  find_regions(*plan_);
  find_lifetimes(*plan_, plan_->pending);
  if (options_.reuse_buffers) share_in_place(*plan_);
  find_planes();
  MOKA_TRY(assign_memory(*plan_, scratch_, options_));
  MOKA_TRY(check(*plan_));
  if (options_.prepare_late && plan_->parent == nullptr) plan_->late = LatePreparation::take(preparations_, options_);
  MOKA_TRY(prepare_kernels(preparations_, options_));
  return std::shared_ptr<const Plan>(plan_);
}

}  // namespace moka::plan
