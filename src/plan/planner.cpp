#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <set>

#include "kernel/layout.h"
#include "plan/codes.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plan/states.h"

namespace moka::plan {

namespace {

/// Bytes of one value; sums of a plan's values then stay far from overflow.
constexpr size_t kLargestValue = size_t{1} << 48;

using kernel::Layout;

constexpr size_t kFoldBytes = 64 * 1024;
constexpr size_t kEagerConstantBytes = 4096;
constexpr int kMaxBlockDepth = 32;
constexpr size_t kParallelBytes = 512 * 1024;

/// See MatchCall::reshaped.
bool is_reshaped(const ir::Op& op) {
  for (size_t i = 0; i < op.output_count(); i++)
    for (const ir::Op* user : op.output(i)->users())
      if (!user->has_trait(ir::Trait::alias) && user->type_name() != "transpose") return false;
  return true;
}

/// Values used in `block` but defined outside of it.
void free_values(const ir::Block& block, std::set<const ir::Value*>& defined, std::vector<const ir::Value*>& out) {
  for (const auto& v : block.inputs()) defined.insert(v.get());
  auto use = [&](const ir::Value* v) {
    if (v->constant() == nullptr && !defined.contains(v)) {
      out.push_back(v);
      defined.insert(v);
    }
  };
  for (const auto& op : block.ops()) {
    for (const ir::Operand& o : op->operands())
      for (const ir::Value* v : o.values) use(v);
    for (size_t i = 0; i < op->block_count(); i++) free_values(*op->block(i), defined, out);
    for (size_t i = 0; i < op->output_count(); i++) defined.insert(op->output(i));
  }
  for (const ir::Value* v : block.outputs()) use(v);
}

std::vector<const ir::Value*> free_values(const ir::Block& block) {
  std::set<const ir::Value*> defined;
  std::vector<const ir::Value*> out;
  free_values(block, defined, out);
  return out;
}

/// A place can be made for it: sizes of lists and dictionaries are run-time matters.
bool is_plannable(const ir::Type& t) { return t.is_tensor() ? t.is_concrete() : t.is_list() || t.is_dict(); }
bool all_plannable(std::span<const ir::Type> types) { return std::all_of(types.begin(), types.end(), is_plannable); }

bool same_at_run_time(const ir::Type& a, const ir::Type& b) {
  return a.is_list() ? b.is_list() && ir::is_compatible(a.element(), b.element()) : a == b;
}

bool is_object(const ir::Type& t) { return !t.is_tensor() || t.dtype() == ir::DType::string; }

/// The inputs of an operation as a kernel or an inference function sees them.
struct CallArgs {
  std::vector<ir::Arg> args;
  std::vector<ir::TensorView> views;
  std::unique_ptr<bool[]> constant;
  std::vector<Layout> layouts;
  bool all_known = true, all_constant = true;
};

class Planner {
 public:
  Planner(std::shared_ptr<Plan> plan, const ir::Block& block, const PlanOptions& options, bool own_outputs)
      : plan_(std::move(plan)), block_(block), options_(options), own_outputs_(own_outputs) {}

  Result<std::shared_ptr<const Plan>> run(const ir::Op* from, std::span<const ir::Type> pending_types);
  Status import_all(std::span<const ir::Value* const> values);
  /// All that `from` and what is behind it in the block use, so that later segments find it here.
  Status import_later(const ir::Op& from);

 private:
  Place& place(int i) { return plan_->places[static_cast<size_t>(i)]; }
  int add_place(Place p);
  int add_result(const ir::Value* v, const ir::Type& type, Layout layout);
  Result<size_t> bytes_of(const ir::Type& type, Layout layout) {
    return kernel::storage_bytes(type.dtype(), type.shape(), layout);
  }
  Result<int> find(const ir::Value* v);
  Result<int> in_layout(int p, Layout layout);
  Status materialize(int p);
  int prepared(int p);
  /// The value behind a place, when the pool of constants has it.
  const ir::Value* pooled(int p) {
    const ir::Value* v = place(p).storage == Storage::constant ? place(p).value : nullptr;
    return v != nullptr && ConstantPool::is_constant(*v) ? v : nullptr;
  }
  CallArgs call_args(std::span<const int> in);
  Result<std::vector<int>> operands(const ir::Op& op, std::vector<uint32_t>& first);

  /// false: the plan ends here.
  Result<bool> plan_op(const ir::Op& op, const std::vector<ir::Type>* known_types);
  Result<bool> plan_control(const ir::Op& op);
  bool can_cut(const kernel::KernelChoice& choice, std::span<const int> in);
  Result<bool> stop_at(const ir::Op& op, std::vector<int> in, std::vector<uint32_t> first);
  Status fold(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types);
  Status emit(const ir::Op& op, std::vector<int> in, std::vector<uint32_t> first, const std::vector<ir::Type>& types);
  Status finish_outputs();
  bool on_state(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types);
  void lifetimes(const ir::Op* pending);

  std::shared_ptr<Plan> plan_;
  const ir::Block& block_;
  const PlanOptions& options_;
  bool own_outputs_;
  std::map<std::pair<int, std::pair<Layout::Kind, int>>, int> converted_;
  std::map<int, int> prepared_;
  std::vector<size_t> scratch_;
  std::vector<Preparation> preparations_;
  StateUses states_;
};

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

Status Planner::import_later(const ir::Op& from) {
  bool behind = false;
  auto use = [&](const ir::Value* v) -> Status {
    if (v->constant() == nullptr && plan_->parent->place_of.contains(v)) MOKA_TRY(find(v));
    return {};
  };
  for (const auto& op : block_.ops()) {
    behind |= op.get() == &from;
    if (!behind) continue;
    for (const ir::Operand& o : op->operands())
      for (const ir::Value* v : o.values) MOKA_TRY(use(v));
    for (size_t b = 0; b < op->block_count(); b++)
      for (const ir::Value* v : free_values(*op->block(b))) MOKA_TRY(use(v));
  }
  for (const ir::Value* v : block_.outputs()) MOKA_TRY(use(v));
  return {};
}

Status Planner::materialize(int i) {
  Place& p = place(i);
  if (p.storage == Storage::constant && p.constant.empty_handle() && p.value->type.is_tensor())
    p.constant = MOKA_TRY(options_.constants->get(*p.value, true));
  return {};
}

Result<int> Planner::in_layout(int i, Layout layout) {
  MOKA_TRY(materialize(i));
  if (place(i).layout == layout) return i;
  auto key = std::pair(i, std::pair(layout.kind, static_cast<int>(layout.block)));
  if (auto it = converted_.find(key); it != converted_.end()) return it->second;
  Place p;
  p.type = place(i).type;
  p.layout = layout;
  int out = add_place(std::move(p));
  Step s;
  s.kind = Step::Kind::convert;
  s.in = {i};
  s.out = {out};
  if (MOKA_TRY(bytes_of(place(i).type, layout)) > kParallelBytes) s.threads = options_.threads;
  plan_->steps.push_back(std::move(s));
  scratch_.push_back(0);
  converted_[key] = out;
  return out;
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

CallArgs Planner::call_args(std::span<const int> in) {
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
    c.all_constant &= c.constant[i] && p.type.is_tensor();  // only tensors are folded
    c.layouts.push_back(p.layout);
  }
  return c;
}

Status Planner::fold(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types) {
  CallArgs c = call_args(in);
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
  for (int& i : in) i = MOKA_TRY(in_layout(i, {}));
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
    all_known = c.all_known || (op.has_trait(ir::Trait::types_only) && known_types == nullptr);
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
    // Deferred constants whose values decide a shape are expanded now; then inference gets another chance.
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

/// Reads that are views of the state, and writes of what is in the state already: no step.
bool Planner::on_state(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types) {
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

Status Planner::emit(const ir::Op& op, std::vector<int> in, std::vector<uint32_t> first,
                     const std::vector<ir::Type>& types) {
  if (on_state(op, in, types)) return {};
  if (options_.reuse_buffers && op.has_trait(ir::Trait::alias) && op.epilogue.empty() && types.size() == 1 &&
      place(in[0]).type.is_tensor() && types[0].dtype() == place(in[0]).type.dtype() &&
      types[0].shape().count() == place(in[0]).type.shape().count()) {
    int from = MOKA_TRY(in_layout(in[0], {}));
    Place p;
    p.value = op.output();
    p.type = types[0];
    p.storage = place(from).storage;
    p.root = place(from).root;
    p.delta = place(from).delta;
    p.object = place(from).object;
    if (p.storage == Storage::constant) p.constant = place(from).constant.reshaped(types[0].shape());
    add_place(std::move(p));
    return {};
  }

  Step step;
  step.op = &op;
  std::shared_ptr<kernel::KernelChoice> choice;
  {
    CallArgs c = call_args(in);
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
    match.codes_of = [&](int arg) -> std::optional<kernel::Codes> {
      const ir::Value* v = place(in[static_cast<size_t>(arg)]).value;
      return v == nullptr ? std::nullopt : codes_of(*v);
    };
    ChosenKernel chosen = MOKA_TRY(choose_kernel(match, options_));
    step.device = chosen.device;
    step.threads = chosen.threads;
    step.refusals = std::move(chosen.refusals);
    step.by = chosen.by;
    step.measurement = std::move(chosen.measurement);
    choice = std::move(chosen.choice);
  }

  if (choice->prepare) {
    Preparation& p = preparations_.emplace_back(Preparation{&op, choice, {}});
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
      in[i] = MOKA_TRY(in_layout(in[i], wanted));
  }
  const bool cut = can_cut(*choice, in);
  for (size_t i = 0; i < types.size(); i++) {
    step.out.push_back(add_result(op.output(i), types[i], i < choice->out.size() ? choice->out[i] : Layout{}));
    if (cut)
      place_in(place(step.out.back()), place(in[static_cast<size_t>(choice->cuts[i].in)]), choice->cuts[i].offset);
  }
  if (cut) step.kind = Step::Kind::placed;
  if (const ir::Value* state = states_.state_of(op); state != nullptr && choice->in_place >= 0 && types.size() == 1) {
    const Place& x = place(in[static_cast<size_t>(choice->in_place)]);
    const Place& s = place(MOKA_TRY(find(state)));
    const auto readers = std::count_if(in.begin(), in.end(), [&](int i) { return place(i).root == s.root; });
    if (x.root == s.root && x.type == types[0] && readers == 1) {
      Place& out = place(step.out[0]);
      out.storage = s.storage;
      out.root = s.root;
    }
  }
  if (choice->epilogues < op.epilogue.size() && !choice->out.empty() && !choice->out[0].is_row_major())
    return fail(ErrorCode::internal, "kernel ", choice->kernel, " leaves fused functions in layout ",
                to_string(choice->out[0]));
  scratch_.push_back(choice->scratch);
  step.in = std::move(in);
  step.first_arg = std::move(first);
  step.choice = std::move(choice);
  plan_->steps.push_back(std::move(step));
  return {};
}

/// States are written while parts of them may still be wanted.
bool Planner::can_cut(const kernel::KernelChoice& choice, std::span<const int> in) {
  return options_.reuse_buffers && !choice.cuts.empty() &&
         std::all_of(choice.cuts.begin(), choice.cuts.end(), [&](const kernel::Part& c) {
           const Place& root = place(place(in[static_cast<size_t>(c.in)]).root);
           return root.type.is_tensor() && (root.storage == Storage::arena || root.storage == Storage::external);
         });
}

Result<bool> Planner::plan_control(const ir::Op& op) {
  std::vector<uint32_t> first;
  std::vector<int> in = MOKA_TRY(operands(op, first));
  for (int& i : in)
    if (place(i).type.is_tensor()) i = MOKA_TRY(in_layout(i, {}));
  bool loop = op.type_name() == "while_loop";
  if (op.block_count() != 2)
    return fail(ErrorCode::malformed, "operation '", op.name, "' needs two blocks, has ", op.block_count());

  Step step;
  step.kind = loop ? Step::Kind::loop : Step::Kind::cond;
  step.op = &op;
  step.blocks[0] = std::make_shared<PlanCache>();
  step.blocks[1] = std::make_shared<PlanCache>();

  // Values that the blocks use must outlive the step: they are inputs of it, behind the operands.
  std::vector<int> all = in;
  for (size_t b = 0; b < 2; b++)
    for (const ir::Value* v : free_values(*op.block(b))) all.push_back(MOKA_TRY(find(v)));

  std::vector<ir::Type> vars;
  if (loop)
    for (int i : in) vars.push_back(place(i).type);
  std::vector<ir::Type> types;
  bool fixed = true;
  for (size_t b = 0; b < 2 && fixed; b++) {
    if (op.block(b)->inputs().size() != vars.size())
      return fail(ErrorCode::malformed, "operation '", op.name, "' (", op.type_name(), "): block ", b, " expected ",
                  vars.size(), " inputs, has ", op.block(b)->inputs().size());
    auto made = step.blocks[b]->get(vars, options_.cached_shapes, [&] {
      return plan_block(*op.block(b), vars, plan_.get(), options_, loop && b == 1);
    });
    if (!made.ok()) {
      if (made.error().code() == ErrorCode::out_of_budget || loop) return std::move(made).error();
      fixed = false;
      break;
    }
    const Plan& inner = **made;
    if (!inner.is_complete()) {
      fixed = false;
    } else if (loop && b == 0) {
      continue;
    } else {
      std::vector<ir::Type> out = inner.output_types();
      const std::vector<ir::Type>& expected = loop ? vars : b == 0 ? out : types;
      fixed = out.size() == expected.size() && out.size() == op.output_count() &&
              std::equal(out.begin(), out.end(), expected.begin(), same_at_run_time);
      types = std::move(out);
    }
  }
  if (!fixed) {
    MOKA_TRY(stop_at(op, std::move(in), std::move(first)));
    plan_->pending_runs_first = true;
    plan_->pending_step.kind = step.kind;
    plan_->pending_step.blocks[0] = step.blocks[0];
    plan_->pending_step.blocks[1] = step.blocks[1];
    return false;
  }
  step.in = std::move(all);
  step.first_arg = std::move(first);
  for (size_t i = 0; i < types.size(); i++) step.out.push_back(add_result(op.output(i), types[i], {}));
  plan_->steps.push_back(std::move(step));
  scratch_.push_back(0);
  return true;
}

Status Planner::finish_outputs() {
  std::set<int> taken;
  for (size_t k = 0; k < block_.outputs().size(); k++) {
    int i = MOKA_TRY(find(block_.outputs()[k]));
    if (place(i).type.is_tensor()) i = MOKA_TRY(in_layout(i, {}));
    const Place& root = place(place(i).root);
    const bool object = is_object(place(i).type);
    // A list that a loop hands on unchanged stays where it is.
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
      plan_->steps.push_back(std::move(s));
      scratch_.push_back(0);
    }
    plan_->outputs.push_back(i);
  }
  return {};
}

void Planner::lifetimes(const ir::Op* pending) {
  auto& places = plan_->places;
  int end = static_cast<int>(plan_->steps.size());
  for (Place& p : places) p.first = INT_MAX, p.last = -1;
  auto touch = [&](int i, int step) {
    Place& r = places[static_cast<size_t>(places[static_cast<size_t>(i)].root)];
    r.first = std::min(r.first, step);
    r.last = std::max(r.last, step);
  };
  for (int s = 0; s < end; s++) {
    const Step& step = plan_->steps[static_cast<size_t>(s)];
    for (int i : step.in) touch(i, s);
    for (int i : step.out) touch(i, s);
  }
  for (int i : plan_->outputs) touch(i, end);
  if (pending == nullptr) return;
  for (int i : plan_->pending_step.in) touch(i, end);
  // All that the rest of the block may use.
  bool behind = false;
  auto use = [&](const ir::Value* v) {
    if (auto it = plan_->place_of.find(v); it != plan_->place_of.end()) touch(it->second, end);
  };
  for (const auto& op : block_.ops()) {
    behind |= op.get() == pending;
    if (!behind) continue;
    for (const ir::Operand& o : op->operands())
      for (const ir::Value* v : o.values) use(v);
    for (size_t b = 0; b < op->block_count(); b++)
      for (const ir::Value* v : free_values(*op->block(b))) use(v);
  }
  for (const ir::Value* v : block_.outputs()) use(v);
}

Result<std::shared_ptr<const Plan>> Planner::run(const ir::Op* from, std::span<const ir::Type> pending_types) {
  bool started = from == nullptr;
  bool complete = true;
  if (started && plan_->parent == nullptr && options_.reuse_buffers) states_ = uses_of_states(block_);
  for (const auto& op : block_.ops()) {
    std::vector<ir::Type> known;
    const std::vector<ir::Type>* known_types = nullptr;
    if (!started) {
      if (op.get() != from) continue;
      started = true;
      if (op->has_trait(ir::Trait::control)) continue;  // already run: its outputs are inputs of this plan
      known.assign(pending_types.begin(), pending_types.end());
      known_types = &known;
    }
    if (!MOKA_TRY(plan_op(*op, known_types))) {
      complete = false;
      break;
    }
  }
  if (complete) MOKA_TRY(finish_outputs());
  for (Place& p : plan_->places)
    if (p.storage == Storage::arena && p.type.is_tensor()) p.bytes = MOKA_TRY(bytes_of(p.type, p.layout));
  if (options_.reuse_buffers) place_parts(*plan_);
  lifetimes(plan_->pending);
  if (options_.reuse_buffers) share_in_place(*plan_);
  MOKA_TRY(assign_memory(*plan_, scratch_, options_));
  MOKA_TRY(check(*plan_));
  MOKA_TRY(prepare_kernels(preparations_, options_));
  return std::shared_ptr<const Plan>(plan_);
}

int depth_of(const Plan* p) {
  int d = 0;
  for (; p != nullptr; p = p->parent)
    if (p->parent == nullptr || p->parent->block != p->block) d++;
  return d;
}

}  // namespace

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
    Place p;
    p.value = block.inputs()[i].get();
    p.type = inputs[i];
    p.storage = Storage::external;
    p.root = static_cast<int>(i);
    plan->inputs.push_back(static_cast<int>(i));
    plan->place_of[p.value] = static_cast<int>(i);
    plan->places.push_back(std::move(p));
  }
  Planner planner(plan, block, options, own_outputs);
  if (parent != nullptr) MOKA_TRY(planner.import_all(free_values(block)));
  return planner.run(nullptr, {});
}

Result<std::shared_ptr<const Plan>> plan_rest(const Plan& before, std::span<const ir::Type> outputs,
                                              const PlanOptions& options) {
  auto plan = std::make_shared<Plan>();
  plan->block = before.block;
  plan->parent = &before;
  plan->own_outputs = before.own_outputs;
  if (before.pending_runs_first) {
    for (size_t i = 0; i < outputs.size(); i++) {
      Place p;
      p.value = before.pending->output(i);
      p.type = outputs[i];
      p.storage = Storage::external;
      p.root = static_cast<int>(i);
      plan->inputs.push_back(static_cast<int>(i));
      plan->place_of[p.value] = static_cast<int>(i);
      plan->places.push_back(std::move(p));
    }
  }
  Planner planner(plan, *before.block, options, before.own_outputs);
  MOKA_TRY(planner.import_later(*before.pending));
  return planner.run(before.pending, outputs);
}

}  // namespace moka::plan
