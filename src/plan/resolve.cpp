// SPDX-License-Identifier: Apache-2.0
#include "plan/resolve.h"

#include <algorithm>
#include <set>

namespace moka::plan {

namespace {

constexpr int kMaxBlockDepth = 32;

/// Whether a value of the type can be placed. Sizes of lists and dictionaries may be known only at run time.
bool is_plannable(const ir::Type& t) { return t.is_tensor() ? t.is_concrete() : t.is_list() || t.is_dict(); }
bool all_plannable(std::span<const ir::Type> types) { return std::all_of(types.begin(), types.end(), is_plannable); }

bool same_at_run_time(const ir::Type& a, const ir::Type& b) {
  return a.is_list() ? b.is_list() && ir::is_compatible(a.element(), b.element()) : a == b;
}

/// Bytes of the tensors of these types that are concrete. Errors: out_of_budget, those of storage_bytes.
Result<size_t> tensor_bytes(const ir::Op& op, std::span<const ir::Type> types) {
  size_t bytes = 0;
  for (const ir::Type& t : types) {
    if (!t.is_tensor() || !t.is_concrete()) continue;
    const size_t b = MOKA_TRY_IN(ir::storage_bytes(t.dtype(), t.shape()), cat("operation '", op.name, "'"));
    if (b > kLargestValue) return fail(ErrorCode::out_of_budget, "operation '", op.name, "' makes a ", t);
    bytes += b;
  }
  return bytes;
}

class Resolver {
 public:
  Resolver(std::shared_ptr<Resolved> resolved, const Resolved* outer, ConstantPool& constants,
           const ResolveLimits& limits)
      : made_(std::move(resolved)), outer_(outer), constants_(constants), limits_(limits) {}

  /// Resolves the operations from `from` on, whose outputs have the types `known` unless it is control flow, which has
  /// run already. nullptr: all operations.
  Result<std::shared_ptr<const Resolved>> run(const ir::Op* from, std::span<const ir::Type> known) {
    const ir::Block& block = *made_->block;
    auto it = block.ops().begin();
    if (from != nullptr) {
      while (it->get() != from) ++it;
      if (!from->has_trait(ir::Trait::control) && !MOKA_TRY(visit_call(*from, known))) return made_;
      ++it;
    }
    for (; it != block.ops().end(); ++it)
      if (!MOKA_TRY(visit(**it))) return made_;
    for (const ir::Value* v : block.outputs()) made_->outputs.push_back(MOKA_TRY(find(v)));
    return made_;
  }

  /// Adds values of the surrounding block, so that the blocks and continuations of this one find them here.
  Status import(std::span<const ir::Value* const> values) {
    for (const ir::Value* v : values)
      if (v->constant() == nullptr && outer_->find(v) >= 0) MOKA_TRY(find(v));
    return {};
  }

 private:
  using Source = ResolvedValue::Source;

  ResolvedValue& at(int i) { return made_->values[static_cast<size_t>(i)]; }

  int add(ResolvedValue v) {
    const auto i = static_cast<int>(made_->values.size());
    made_->index.try_emplace(v.value, i);
    made_->values.push_back(std::move(v));
    return i;
  }

  Result<int> find(const ir::Value* v) {
    if (const int i = made_->find(v); i >= 0) return i;
    if (v->constant() != nullptr) return add({v, v->constant()->type, Source::constant, v->constant()->tensor});
    if (const int i = outer_ == nullptr ? -1 : outer_->find(v); i >= 0) {
      const ResolvedValue& from = outer_->at(i);
      return add({v, from.type, from.is_constant() ? Source::constant : Source::outer, from.constant});
    }
    return fail(ErrorCode::internal, "'", v->name, "' is used before it is planned");
  }

  Result<ResolvedOp> operands(const ir::Op& op) {
    ResolvedOp out{.op = &op};
    const size_t params = op.version().params.size();
    out.first.assign(params + 1, 0);
    auto operand = op.operands().begin();
    for (size_t p = 0; p < params; p++) {
      out.first[p] = static_cast<uint32_t>(out.in.size());
      if (operand == op.operands().end() || operand->param != static_cast<int>(p)) continue;
      for (const ir::Value* v : operand->values) out.in.push_back(MOKA_TRY(find(v)));
      ++operand;
    }
    out.first.back() = static_cast<uint32_t>(out.in.size());
    return out;
  }

  /// False: the block ends here.
  Result<bool> visit(const ir::Op& op) {
    if (op.has_trait(ir::Trait::constant)) return true;
    if (limits_.operations != nullptr) ++*limits_.operations;
    return op.has_trait(ir::Trait::control) ? visit_control(op) : visit_call(op, {});
  }

  Result<bool> visit_call(const ir::Op& op, std::span<const ir::Type> known) {
    ResolvedOp call = MOKA_TRY(operands(op));
    const CallArgs args(*made_, call.in);
    std::vector<ir::Type> types(known.begin(), known.end());
    if (known.empty()) types = MOKA_TRY(infer(call, args));
    if (types.size() != op.output_count())
      return fail(ErrorCode::internal, "operation '", op.name, "' (", op.type_name(), ") infers ", types.size(),
                  " outputs, has ", op.output_count());
    const size_t bytes = MOKA_TRY(tensor_bytes(op, types));
    if (MOKA_TRY(fold(call, args, types, bytes))) return true;
    if (!all_plannable(types)) {
      // Constants that were left unexpanded may decide a shape. They are expanded now, and inference runs again.
      if (MOKA_TRY(expand_constants(call.in))) return visit_call(op, known);
      return end_at(std::move(call));
    }
    call.is_alias = op.has_trait(ir::Trait::alias) && op.epilogue.empty() && types.size() == 1 &&
                    at(call.in[0]).type.is_tensor() && types[0].dtype() == at(call.in[0]).type.dtype() &&
                    types[0].shape().count() == at(call.in[0]).type.shape().count();
    add_call(std::move(call), types);
    return true;
  }

  void add_call(ResolvedOp call, const std::vector<ir::Type>& types) {
    for (size_t i = 0; i < types.size(); i++)
      call.out.push_back(add({call.op->output(i), types[i], Source::operation, {}}));
    made_->ops.push_back(std::move(call));
  }

  bool end_at(ResolvedOp op) {
    made_->pending = std::move(op);
    return false;
  }

  static Result<std::vector<ir::Type>> infer(const ResolvedOp& op, const CallArgs& args) {
    ir::OpCall call(op.op->version(), op.op->name, args.args, op.first);
    call.op = op.op;
    return op.op->version().infer(call);
  }

  /// Whether the operation's results are constants, which are added as values.
  Result<bool> fold(const ResolvedOp& call, const CallArgs& args, const std::vector<ir::Type>& types, size_t bytes) {
    const ir::Op& op = *call.op;
    if (!op.version().reference || op.output_count() == 0 || op.has_trait(ir::Trait::random) ||
        op.has_trait(ir::Trait::stateful) || !op.epilogue.empty() || !all_plannable(types) ||
        !std::all_of(types.begin(), types.end(), [](const ir::Type& t) { return t.is_tensor(); }))
      return false;
    if (args.all_constant && ConstantPool::is_constant(*op.output())) {
      for (size_t i = 0; i < types.size(); i++) {
        const int added = add({op.output(i), types[i], Source::constant, {}});
        if (bytes <= kEagerConstantBytes) MOKA_TRY_IN(expand(added), cat("operation '", op.name, "'"));
      }
      return true;
    }
    const bool all_known = args.all_known || (op.has_trait(ir::Trait::types_only) && args.all_shapes_known);
    if (!all_known || bytes > limits_.fold) return false;
    MOKA_TRY_IN(compute(call, args, types), cat("operation '", op.name, "'"));
    return true;
  }

  Status compute(const ResolvedOp& op, const CallArgs& known, const std::vector<ir::Type>& types) {
    std::vector<ir::Arg> args = known.args;
    std::vector<ir::TensorView> shapes;  // shapes of operands whose elements are not read
    shapes.reserve(op.in.size());
    for (auto& [type, view] : args)
      if (view == nullptr) view = &shapes.emplace_back(ir::TensorView{type->dtype(), type->shape(), nullptr});
    ir::OpCall call(op.op->version(), op.op->name, args, op.first);
    call.op = op.op;
    std::vector<ir::Tensor> results;
    std::vector<ir::TensorView> views;
    for (const ir::Type& t : types) {
      results.push_back(MOKA_TRY(ir::Tensor::zeros(t.dtype(), t.shape())));
      views.push_back(results.back().view());
    }
    MOKA_TRY(op.op->version().reference(call, views));
    for (size_t i = 0; i < types.size(); i++)
      add({op.op->output(i), types[i], Source::constant, std::move(results[i])});
    return {};
  }

  Status expand(int i) {
    ResolvedValue& v = at(i);
    if (v.is_constant() && v.constant.empty_handle() && v.value->type.is_tensor())
      v.constant = MOKA_TRY(constants_.get(*v.value, true));
    return {};
  }

  /// Whether there were constants to expand.
  Result<bool> expand_constants(std::span<const int> in) {
    bool expanded = false;
    for (int i : in) {
      const ResolvedValue& v = at(i);
      if (!v.is_constant() || !v.constant.empty_handle() || !may_expand(v.type)) continue;
      MOKA_TRY(expand(i));
      expanded |= !at(i).constant.empty_handle();
    }
    return expanded;
  }

  bool may_expand(const ir::Type& t) const {
    if (limits_.expand == SIZE_MAX) return true;
    const auto bytes = t.is_tensor() && t.is_concrete() ? ir::storage_bytes(t.dtype(), t.shape()) : Result<size_t>(0);
    return bytes.ok() && *bytes <= limits_.expand;
  }

  Result<bool> visit_control(const ir::Op& op) {
    if (op.block_count() != 2)
      return fail(ErrorCode::malformed, "operation '", op.name, "' needs two blocks, has ", op.block_count());
    ResolvedOp control = MOKA_TRY(operands(op));
    for (size_t b = 0; b < 2; b++)
      for (const ir::Value* v : free_values(*op.block(b))) control.captured.push_back(MOKA_TRY(find(v)));
    const auto types = MOKA_TRY(resolve_blocks(control));
    if (types) {
      add_call(std::move(control), *types);
      return true;
    }
    made_->pending_runs_first = true;
    return end_at(std::move(control));
  }

  /// The types of the outputs; nullopt: values decide some, or a branch has an error that is told when it is taken.
  Result<std::optional<std::vector<ir::Type>>> resolve_blocks(ResolvedOp& control) {
    const ir::Op& op = *control.op;
    const bool loop = op.type_name() == "while_loop";
    std::vector<ir::Type> vars, types;
    if (loop)
      for (int i : control.in) vars.push_back(at(i).type);
    for (size_t b = 0; b < 2; b++) {
      if (op.block(b)->inputs().size() != vars.size())
        return fail(ErrorCode::malformed, "operation '", op.name, "' (", op.type_name(), "): block ", b, " expected ",
                    vars.size(), " inputs, has ", op.block(b)->inputs().size());
      auto inner = resolve(*op.block(b), vars, made_.get(), constants_, limits_);
      if (!inner.ok()) {
        if (inner.error().code() == ErrorCode::out_of_budget || loop) return std::move(inner).error();
        return std::nullopt;
      }
      control.blocks[b] = std::move(*inner);
      if (!control.blocks[b]->is_complete()) return std::nullopt;
      if (loop && b == 0) continue;
      std::vector<ir::Type> out = control.blocks[b]->output_types();
      const std::vector<ir::Type>& expected = loop ? vars : b == 0 ? out : types;
      if (out.size() != expected.size() || out.size() != op.output_count() ||
          !std::equal(out.begin(), out.end(), expected.begin(), same_at_run_time))
        return std::nullopt;
      types = std::move(out);
    }
    return types;
  }

  std::shared_ptr<Resolved> made_;
  const Resolved* outer_;
  ConstantPool& constants_;
  const ResolveLimits& limits_;
};

void add_input(Resolved& to, const ir::Value& value, const ir::Type& type) {
  const auto i = static_cast<int>(to.values.size());
  to.inputs.push_back(i);
  to.index[&value] = i;
  to.values.push_back({&value, type, ResolvedValue::Source::input, {}});
}

void free_values(const ir::Block& block, std::set<const ir::Value*>& defined, std::vector<const ir::Value*>& out) {
  for (const auto& v : block.inputs()) defined.insert(v.get());
  auto use = [&](const ir::Value* v) {
    if (v->constant() == nullptr && defined.insert(v).second) out.push_back(v);
  };
  for (const auto& op : block.ops()) {
    for (const ir::Operand& o : op->operands())
      for (const ir::Value* v : o.values) use(v);
    for (size_t i = 0; i < op->block_count(); i++) free_values(*op->block(i), defined, out);
    for (size_t i = 0; i < op->output_count(); i++) defined.insert(op->output(i));
  }
  for (const ir::Value* v : block.outputs()) use(v);
}

}  // namespace

CallArgs::CallArgs(const Resolved& resolved, std::span<const int> in) {
  views.reserve(in.size());
  constant = std::make_unique<bool[]>(in.size() + 1);
  for (size_t i = 0; i < in.size(); i++) {
    const ResolvedValue& v = resolved.at(in[i]);
    const ir::TensorView* view = nullptr;
    if (v.is_constant() && !v.constant.empty_handle()) view = &views.emplace_back(v.constant.view());
    args.push_back({&v.type, view});
    constant[i] = v.is_constant();
    all_known &= view != nullptr;
    all_shapes_known &= v.type.is_tensor() && v.type.is_concrete();
    all_constant &= constant[i] && v.type.is_tensor();  // only tensors are folded
  }
}

std::vector<const ir::Value*> free_values(const ir::Block& block) {
  std::set<const ir::Value*> defined;
  std::vector<const ir::Value*> out;
  free_values(block, defined, out);
  return out;
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

std::vector<ir::Type> Resolved::output_types() const {
  std::vector<ir::Type> t;
  for (int i : outputs) t.push_back(at(i).type);
  return t;
}

size_t Resolved::bytes(const Resolved* outer) const {
  size_t n =
      sizeof *this + values.size() * (sizeof(ResolvedValue) + 4 * sizeof(void*)) + ops.size() * sizeof(ResolvedOp);
  for (const ResolvedValue& v : values)
    if (v.is_constant() && !ConstantPool::is_constant(*v.value) && (outer == nullptr || outer->find(v.value) < 0))
      n += v.constant.bytes();
  for (const ResolvedOp& op : ops) n += (op.in.size() + op.out.size() + op.first.size()) * sizeof(int);
  return n;
}

Result<std::shared_ptr<const Resolved>> resolve(const ir::Block& block, std::span<const ir::Type> inputs,
                                                const Resolved* outer, ConstantPool& constants,
                                                const ResolveLimits& limits) {
  if (inputs.size() != block.inputs().size())
    return fail(ErrorCode::internal, "a block of ", block.inputs().size(), " inputs is planned for ", inputs.size());
  auto made = std::make_shared<Resolved>();
  made->block = &block;
  made->depth = outer == nullptr ? 0 : outer->depth + 1;
  if (made->depth > kMaxBlockDepth)
    return fail(ErrorCode::unsupported, "blocks are nested more than ", kMaxBlockDepth, " deep");
  for (size_t i = 0; i < inputs.size(); i++) {
    const ir::Value& value = *block.inputs()[i];
    const ir::Type& t = inputs[i].is_state() ? inputs[i].element() : inputs[i];
    if (t.is_tensor() && t.is_concrete()) {
      const size_t bytes = MOKA_TRY_IN(ir::storage_bytes(t.dtype(), t.shape()), cat("input '", value.name, "'"));
      if (bytes > kLargestValue) return fail(ErrorCode::out_of_budget, "input '", value.name, "' is a ", t);
    }
    add_input(*made, value, inputs[i]);
  }
  if (outer == nullptr) made->states = uses_of_states(block);
  Resolver resolver(made, outer, constants, limits);
  if (outer != nullptr) MOKA_TRY(resolver.import(free_values(block)));
  return resolver.run(nullptr, {});
}

Result<std::shared_ptr<const Resolved>> resolve_rest(const Resolved& before, std::span<const ir::Type> outputs,
                                                     ConstantPool& constants) {
  auto made = std::make_shared<Resolved>();
  made->block = before.block;
  made->depth = before.depth;
  const ir::Op& from = *before.pending->op;
  if (before.pending_runs_first)
    for (size_t i = 0; i < outputs.size(); i++) add_input(*made, *from.output(i), outputs[i]);
  const ResolveLimits limits;
  Resolver resolver(made, &before, constants, limits);
  MOKA_TRY(resolver.import(used_from(*before.block, from)));
  return resolver.run(&from, outputs);
}

}  // namespace moka::plan
