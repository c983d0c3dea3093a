#include "ir/specialize.h"

#include <algorithm>
#include <utility>

#include "ir/evaluate.h"

namespace moka::ir {

namespace {

/// The value of each operand, or of its type alone for operations that read no more; empty: not all are known.
Result<std::vector<RuntimeValue>> known_inputs(const Op& op) {
  std::vector<RuntimeValue> out;
  for (const Operand& o : op.operands())
    for (const Value* v : o.values) {
      if (v->constant() != nullptr)
        out.push_back(MOKA_TRY(runtime_value(*v->constant())));
      else if (op.has_trait(Trait::types_only) && v->type.is_tensor() && v->type.is_concrete())
        out.emplace_back(MOKA_TRY(Tensor::zeros(v->type.dtype(), v->type.shape())));
      else
        return std::vector<RuntimeValue>();
    }
  return out;
}

bool may_fold(const Op& op) {
  if (!op.version().reference || op.block_count() > 0 || op.output_count() == 0) return false;
  if (op.has_trait(Trait::random) || op.has_trait(Trait::stateful) || op.has_trait(Trait::constant) ||
      op.has_trait(Trait::parameter) || op.has_trait(Trait::constexpr_weight))
    return false;
  for (size_t i = 0; i < op.output_count(); i++)
    if (const Type& t = op.output(i)->type; !t.is_tensor() || is_float(t.dtype())) return false;
  return true;
}

Status fold(Op& op, const OpTable& table) {
  const auto inputs = MOKA_TRY(known_inputs(op));
  if (inputs.empty()) return {};
  EvaluateOptions options;
  options.table = &table;
  const auto values = MOKA_TRY(evaluate_op(op, inputs, options));
  Builder before = Builder::before(table, op);
  for (size_t i = 0; i < values.size(); i++)
    Function::replace_all_uses(op.output(i), MOKA_TRY(before.constant(op.output(i)->name, Constant(values[i].tensor))));
  return {};
}

}  // namespace

Status specialize(Function& function, std::span<const Type> inputs, const OpTable& table) {
  Block& body = function.body();
  for (size_t i = 0; i < inputs.size(); i++) body.inputs()[i]->type = inputs[i];
  for (auto it = body.ops().begin(); it != body.ops().end();) {
    Op& op = **it;
    if (!op.has_trait(Trait::constant) && op.version().infer && op.block_count() == 0) {
      const StaticCall call(op);
      auto types =
          MOKA_TRY_IN(op.version().infer(call.call()), cat("operation '", op.name, "' (", op.type_name(), ")"));
      for (size_t k = 0; k < types.size() && k < op.output_count(); k++) op.output(k)->type = std::move(types[k]);
      if (may_fold(op)) MOKA_TRY(fold(op, table));
    }
    const bool is_dead = may_fold(op) && std::none_of(op.version().params.begin(), op.version().params.end(),
                                                      [](const ParamDef& p) { return p.kind != ParamKind::tensor; });
    bool is_used = false;
    for (size_t k = 0; k < op.output_count(); k++) is_used |= op.output(k)->is_used();
    if (is_dead && !is_used)
      it = body.erase(&op);
    else
      ++it;
  }
  return {};
}

}  // namespace moka::ir
