#include "plan/planner.h"

#include <algorithm>

#include "plan/late.h"

namespace moka::plan {

namespace {

/// Limit of one value's size. It keeps the sum of a plan's values far from overflow.
constexpr size_t kLargestValue = size_t{1} << 48;

constexpr size_t kFoldBytes = 64 * 1024;
constexpr size_t kEagerConstantBytes = 4096;
constexpr int kMaxBlockDepth = 32;

/// Whether a place can be made for the type. Sizes of lists and dictionaries may be known only at run time.
bool is_plannable(const ir::Type& t) { return t.is_tensor() ? t.is_concrete() : t.is_list() || t.is_dict(); }
bool all_plannable(std::span<const ir::Type> types) { return std::all_of(types.begin(), types.end(), is_plannable); }

bool is_object(const ir::Type& t) { return !t.is_tensor() || t.dtype() == ir::DType::string; }

}  // namespace

int Planner::add_place(Place p) {
  int i = static_cast<int>(plan_->places.size());
  if (p.root < 0) p.root = i;
  if (p.storage == Storage::object && p.object < 0) p.object = static_cast<int>(plan_->objects++);
  if (p.value != nullptr && !plan_->place_of.contains(p.value)) plan_->place_of[p.value] = i;
  plan_->places.push_back(std::move(p));
  return i;
}

int Planner::add_result(const ir::Value* v, const ir::Type& type, Layout layout) {
  Place p;
  p.value = v;
  p.type = type;
  p.layout = layout;
  p.storage = is_object(type) ? Storage::object : Storage::arena;
  return add_place(std::move(p));
}

void Planner::add_step(Step s, size_t scratch) {
  plan_->steps.push_back(std::move(s));
  scratch_.push_back(scratch);
}

const ir::Value* Planner::pooled(int p) {
  const ir::Value* v = place(p).storage == Storage::constant ? place(p).value : nullptr;
  return v != nullptr && ConstantPool::is_constant(*v) ? v : nullptr;
}

Result<int> Planner::find(const ir::Value* v) {
  if (auto it = plan_->place_of.find(v); it != plan_->place_of.end()) return it->second;
  Place p;
  p.value = v;
  if (v->constant() != nullptr) {
    p.type = v->constant()->type;
    p.storage = Storage::constant;
    p.constant = v->constant()->tensor;
    return add_place(std::move(p));
  }
  if (plan_->parent != nullptr) {
    if (auto it = plan_->parent->place_of.find(v); it != plan_->parent->place_of.end()) {
      const Place& outer = plan_->parent->places[static_cast<size_t>(it->second)];
      p.type = outer.type;
      p.layout = outer.layout;
      if (outer.storage == Storage::constant) {
        p.storage = Storage::constant;
        p.constant = outer.constant;
        return add_place(std::move(p));
      }
      p.storage = Storage::external;
      int i = add_place(std::move(p));
      plan_->imports.emplace_back(i, it->second);
      return i;
    }
  }
  return fail(ErrorCode::internal, "'", v->name, "' is used before it is planned");
}

Status Planner::import_all(std::span<const ir::Value* const> values) {
  for (const ir::Value* v : values)
    if (v->constant() == nullptr) MOKA_TRY(find(v));
  return {};
}

std::vector<const ir::Value*> used_from(const ir::Block& block, const ir::Op& from) {
  std::vector<const ir::Value*> out;
  bool behind = false;
  for (const auto& op : block.ops()) {
    behind |= op.get() == &from;
    if (!behind) continue;
    for (const ir::Operand& o : op->operands()) out.insert(out.end(), o.values.begin(), o.values.end());
    for (size_t b = 0; b < op->block_count(); b++)
      for (const ir::Value* v : free_values(*op->block(b))) out.push_back(v);
  }
  out.insert(out.end(), block.outputs().begin(), block.outputs().end());
  return out;
}

Status Planner::import_later(const ir::Op& from) {
  for (const ir::Value* v : used_from(block_, from))
    if (v->constant() == nullptr && plan_->parent->place_of.contains(v)) MOKA_TRY(find(v));
  return {};
}

int Planner::prepared(int i) {
  if (auto it = prepared_.find(i); it != prepared_.end()) return it->second;
  Place p;
  p.type = place(i).type;
  p.storage = Storage::prepared;
  int out = add_place(std::move(p));
  prepared_[i] = out;
  return out;
}

Result<std::vector<int>> Planner::operands(const ir::Op& op, std::vector<uint32_t>& first) {
  std::vector<int> in;
  size_t params = op.version().params.size();
  first.assign(params + 1, 0);
  auto operand = op.operands().begin();
  for (size_t p = 0; p < params; p++) {
    first[p] = static_cast<uint32_t>(in.size());
    if (operand == op.operands().end() || operand->param != static_cast<int>(p)) continue;
    for (const ir::Value* v : operand->values) in.push_back(MOKA_TRY(find(v)));
    ++operand;
  }
  first.back() = static_cast<uint32_t>(in.size());
  return in;
}

CallArgs Planner::call_args(std::span<const int> in, const Device* device) {
  CallArgs c;
  c.views.reserve(in.size());
  c.constant = std::make_unique<bool[]>(in.size() + 1);
  for (size_t i = 0; i < in.size(); i++) {
    const Place& p = place(in[i]);
    const ir::TensorView* view = nullptr;
    if (p.storage == Storage::constant && !p.constant.empty_handle()) {
      c.views.push_back(p.constant.view());
      view = &c.views.back();
    }
    c.args.push_back({&p.type, view});
    c.constant[i] = p.storage == Storage::constant;
    c.all_known &= view != nullptr;
    c.all_shapes_known &= p.type.is_tensor() && p.type.is_concrete();
    c.all_constant &= c.constant[i] && p.type.is_tensor();  // only tensors are folded
    c.layouts.push_back(p.device == device ? p.layout : Layout{});
  }
  return c;
}

Status Planner::fold(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types) {
  CallArgs c = call_args(in);
  std::vector<ir::TensorView> shapes;  // shapes of operands whose elements are not read
  shapes.reserve(in.size());
  for (auto& [type, view] : c.args)
    if (view == nullptr) view = &shapes.emplace_back(ir::TensorView{type->dtype(), type->shape(), nullptr});
  std::vector<uint32_t> first;
  MOKA_TRY(operands(op, first));
  ir::OpCall call(op.version(), op.name, c.args, first);
  call.op = &op;
  std::vector<Place> results;
  std::vector<ir::TensorView> views;
  for (size_t i = 0; i < types.size(); i++) {
    Place p;
    p.value = op.output(i);
    p.type = types[i];
    p.storage = Storage::constant;
    p.constant = MOKA_TRY(ir::Tensor::zeros(types[i].dtype(), types[i].shape()));
    views.push_back(p.constant.view());
    results.push_back(std::move(p));
  }
  MOKA_TRY(op.version().reference(call, views));
  for (Place& p : results) add_place(std::move(p));
  return {};
}

Result<bool> Planner::stop_at(const ir::Op& op, std::vector<int> in, std::vector<uint32_t> first) {
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
  if (foldable && all_known && tensors && all_plannable(types) && bytes <= kFoldBytes && op.epilogue.empty()) {
    MOKA_TRY_IN(fold(op, in, types), cat("operation '", op.name, "'"));
    return true;
  }
  if (!all_plannable(types)) {
    // Constants that were left unexpanded may decide a shape. They are expanded now, and inference runs again.
    bool expanded = false;
    for (int i : in)
      if (place(i).storage == Storage::constant && place(i).constant.empty_handle()) {
        MOKA_TRY(materialize(i));
        expanded = true;
      }
    if (expanded) return plan_op(op, known_types);
    return stop_at(op, std::move(in), std::move(first));
  }
  MOKA_TRY(emit(op, std::move(in), std::move(first), types));
  return true;
}

Status Planner::finish_outputs() {
  // What states hold is read before they are written.
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

namespace {

int depth_of(const Plan* p) {
  int d = 0;
  for (; p != nullptr; p = p->parent)
    if (p->parent == nullptr || p->parent->block != p->block) d++;
  return d;
}

/// Adds a place for a value that is supplied when the plan starts.
void add_input(Plan& plan, const ir::Value& value, const ir::Type& type) {
  const auto i = static_cast<int>(plan.places.size());
  Place p;
  p.value = &value;
  p.type = type;
  p.storage = Storage::external;
  p.root = i;
  plan.inputs.push_back(i);
  plan.place_of[&value] = i;
  plan.places.push_back(std::move(p));
}

/// A plan that has only the places of the inputs.
Result<std::shared_ptr<Plan>> started_plan(const ir::Block& block, std::span<const ir::Type> inputs, const Plan* parent,
                                           bool own_outputs) {
  auto plan = std::make_shared<Plan>();
  plan->block = &block;
  plan->parent = parent;
  plan->own_outputs = own_outputs;
  for (size_t i = 0; i < inputs.size(); i++) {
    const ir::Type& t = inputs[i].is_state() ? inputs[i].element() : inputs[i];
    if (t.is_tensor() && t.is_concrete()) {
      size_t bytes = MOKA_TRY_IN(ir::storage_bytes(t.dtype(), t.shape()), cat("input '", block.inputs()[i]->name, "'"));
      if (bytes > kLargestValue)
        return fail(ErrorCode::out_of_budget, "input '", block.inputs()[i]->name, "' is a ", t);
    }
    add_input(*plan, *block.inputs()[i], inputs[i]);
  }
  return plan;
}

/// A plan that continues after the end of another one.
Result<std::shared_ptr<Plan>> continued_plan(const Plan& before, std::span<const ir::Type> outputs) {
  auto plan = std::make_shared<Plan>();
  plan->block = before.block;
  plan->parent = &before;
  plan->own_outputs = before.own_outputs;
  if (!before.pending_runs_first) return plan;
  for (size_t i = 0; i < outputs.size(); i++) add_input(*plan, *before.pending->output(i), outputs[i]);
  return plan;
}

/// Plans for the host first. If accelerators take some operations, plans once more with them.
template <class Start, class Import>
Result<std::shared_ptr<const Plan>> planned(const ir::Block& block, const PlanOptions& options, bool own_outputs,
                                            const ir::Op* from, std::span<const ir::Type> types, Start start,
                                            Import import) {
  std::optional<Placement> placement;
  if (!accelerators(options).empty()) {
    Draft draft;
    Planner planner(MOKA_TRY(start()), block, options, own_outputs);
    MOKA_TRY(import(planner));
    MOKA_TRY(planner.draft(from, types, draft));
    placement = MOKA_TRY(place(std::move(draft), options));
    placement->is_whole = planner.is_whole();
  }
  Planner planner(MOKA_TRY(start()), block, options, own_outputs, placement ? &*placement : nullptr);
  MOKA_TRY(import(planner));
  return planner.run(from, types);
}

}  // namespace

size_t Plan::bytes() const {
  size_t n = sizeof *this + places.size() * (sizeof(Place) + sizeof(void*)) + steps.size() * sizeof(Step);
  for (const Place& p : places)
    if (p.storage == Storage::constant && p.value != nullptr && !ConstantPool::is_constant(*p.value) &&
        (parent == nullptr || !parent->place_of.contains(p.value)))
      n += p.constant.bytes();
  for (const Step& s : steps) n += (s.in.size() + s.out.size() + s.first_arg.size()) * sizeof(int);
  return n;
}

std::vector<ir::Type> Plan::output_types() const {
  std::vector<ir::Type> t;
  for (int i : outputs) t.push_back(places[static_cast<size_t>(i)].type);
  return t;
}

Result<std::shared_ptr<const Plan>> plan_block(const ir::Block& block, std::span<const ir::Type> inputs,
                                               const Plan* parent, const PlanOptions& options, bool own_outputs) {
  if (inputs.size() != block.inputs().size())
    return fail(ErrorCode::internal, "a block of ", block.inputs().size(), " inputs is planned for ", inputs.size());
  if (depth_of(parent) > kMaxBlockDepth)
    return fail(ErrorCode::unsupported, "blocks are nested more than ", kMaxBlockDepth, " deep");
  return planned(
      block, options, own_outputs, nullptr, {}, [&] { return started_plan(block, inputs, parent, own_outputs); },
      [&](Planner& p) { return parent == nullptr ? Status{} : p.import_all(free_values(block)); });
}

Result<std::shared_ptr<const Plan>> plan_rest(const Plan& before, std::span<const ir::Type> outputs,
                                              const PlanOptions& options) {
  return planned(
      *before.block, options, before.own_outputs, before.pending, outputs,
      [&] { return continued_plan(before, outputs); }, [&](Planner& p) { return p.import_later(*before.pending); });
}

}  // namespace moka::plan
