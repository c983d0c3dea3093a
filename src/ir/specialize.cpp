// SPDX-License-Identifier: Apache-2.0
#include "ir/specialize.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "ir/evaluate.h"
#include "ir/inline.h"

namespace moka::ir {

namespace {

constexpr size_t kMostUnrolled = 20'000;  // operations of one loop
constexpr int64_t kSmall = 16;            // elements of floats that may decide how often a loop runs

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

/// Whether results without floats, or with few if `in_loop`, may become constants.
bool may_fold(const Op& op, bool in_loop = false) {
  if (!op.version().reference || op.block_count() > 0 || op.output_count() == 0) return false;
  if (op.has_trait(Trait::random) || op.has_trait(Trait::stateful) || op.has_trait(Trait::constant) ||
      op.has_trait(Trait::parameter) || op.has_trait(Trait::constexpr_weight))
    return false;
  for (size_t i = 0; i < op.output_count(); i++) {
    const Type& t = op.output(i)->type;
    const bool is_small = in_loop && t.is_concrete() && t.is_tensor() && t.shape().count() <= kSmall;
    if (!t.is_tensor() || (is_float(t.dtype()) && !is_small)) return false;
  }
  return true;
}

/// The constants that take the place of the outputs; empty: they are not known.
Result<std::vector<Value*>> folded(Op& op, const OpTable& table) {
  const auto inputs = MOKA_TRY(known_inputs(op));
  std::vector<Value*> out;
  if (inputs.empty()) return out;
  EvaluateOptions options;
  options.table = &table;
  const auto values = MOKA_TRY(evaluate_op(op, inputs, options));
  Builder before = Builder::before(table, op);
  for (size_t i = 0; i < values.size(); i++)
    out.push_back(MOKA_TRY(before.constant(op.output(i)->name, Constant(values[i].tensor))));
  return out;
}

/// The value of a condition of one element; nullopt: it is not known.
std::optional<bool> known_condition(const Value& v) {
  if (v.constant() == nullptr || v.constant()->tensor.count() != 1) return std::nullopt;
  return load_i64(v.constant()->tensor.view(), 0) != 0;
}

/// A copy of a weight where `builder` appends.
Result<Op*> copied_weight(const Op& op, Builder& builder) {
  if (op.has_trait(Trait::constant)) {
    Op* made = MOKA_TRY(builder.constant(op.output()->name, *op.output()->constant()))->producer();
    made->name = op.name;
    return made;
  }
  std::vector<NamedArg> args;
  for (const Operand& o : op.operands()) {
    const std::string& param = op.version().params[static_cast<size_t>(o.param)].name;
    if (o.tuple)
      args.emplace_back(param, o.values);
    else
      args.emplace_back(param, o.values[0]);
  }
  builder.opset = std::max(builder.opset, op.version().since);
  return builder.append({op.type_name(), std::move(args), op.name});
}

/// Takes weights out of the blocks of control flow, so that each is there once, whichever block runs how often.
Status take_out_weights(Block& block, Op& outer, const OpTable& table) {
  constexpr Trait kWeights[] = {Trait::constant, Trait::constexpr_weight, Trait::parameter};
  for (auto it = block.ops().begin(); it != block.ops().end();) {
    Op& op = **it++;
    for (size_t i = 0; i < op.block_count(); i++) MOKA_TRY(take_out_weights(*op.block(i), outer, table));
    if (std::none_of(std::begin(kWeights), std::end(kWeights), [&](Trait t) { return op.has_trait(t); })) continue;
    Builder before = Builder::before(table, outer);
    const Op* made = MOKA_TRY(copied_weight(op, before));
    for (size_t i = 0; i < op.output_count(); i++) Function::replace_all_uses(op.output(i), made->output(i));
    block.erase(&op);
  }
  return {};
}

class Specializer {
 public:
  explicit Specializer(const OpTable& table) : table_(table) {}

  Status run(Block& body) {
    for (auto it = body.ops().begin(); it != body.ops().end();) {
      Op& op = **it;
      if (op.block_count() > 0) {
        for (size_t i = 0; i < op.block_count(); i++) MOKA_TRY(take_out_weights(*op.block(i), op, table_));
        const bool is_first = it == body.ops().begin();
        const auto before = is_first ? it : std::prev(it);
        if (MOKA_TRY(replaced(op))) {
          body.erase(&op);
          it = is_first ? body.ops().begin() : std::next(before);  // what took its place
          continue;
        }
      }
      MOKA_TRY(infer(op));
      it = is_dead(op) ? body.erase(&op) : std::next(it);
    }
    return {};
  }

 private:
  static bool is_dead(const Op& op) {
    if (!may_fold(op)) return false;
    for (const ParamDef& p : op.version().params)
      if (p.kind != ParamKind::tensor) return false;
    for (size_t k = 0; k < op.output_count(); k++)
      if (op.output(k)->is_used()) return false;
    return true;
  }

  Status infer(Op& op) {
    if (op.has_trait(Trait::constant) || !op.version().infer) return {};
    if (op.type_name() == "while_loop") return {};
    for (size_t i = 0; i < op.block_count(); i++) MOKA_TRY(run(*op.block(i)));
    const StaticCall call(op);
    auto types = MOKA_TRY_IN(op.version().infer(call.call()), cat("operation '", op.name, "' (", op.type_name(), ")"));
    for (size_t k = 0; k < types.size() && k < op.output_count(); k++) op.output(k)->type = std::move(types[k]);
    if (!may_fold(op)) return {};
    const auto constants = MOKA_TRY(folded(op, table_));
    for (size_t i = 0; i < constants.size(); i++) Function::replace_all_uses(op.output(i), constants[i]);
    return {};
  }

  /// Whether operations took the place of control flow, which is no longer used.
  Result<bool> replaced(Op& op) {
    std::vector<Value*> results;
    if (op.type_name() == "cond") {
      const auto taken = known_condition(*op.input("pred"));
      if (!taken) return false;
      Builder builder = Builder::before(table_, op);
      results = MOKA_TRY(inline_block(builder, *op.block(*taken ? 0 : 1), {}, cat(op.name, "_")));
    } else if (op.type_name() == "while_loop") {
      results = MOKA_TRY(iterations(op));
    }
    for (size_t i = 0; i < results.size(); i++) Function::replace_all_uses(op.output(i), results[i]);
    return !results.empty();
  }

  /// The results of a loop as those of copies of its body; empty: how often it runs is not known.
  Result<std::vector<Value*>> iterations(Op& loop) {
    Builder builder = Builder::before(table_, loop);
    std::vector<Op*> copied;
    const Replacement fold = [&](Op& op) -> Result<std::vector<Value*>> {
      copied.push_back(&op);
      return may_fold(op, true) ? folded(op, table_) : std::vector<Value*>();
    };
    std::vector<Value*> vars;
    for (Value* v : loop.inputs("loop_vars"))
      vars.push_back(v->is_inline_constant() ? MOKA_TRY(builder.constant(v->name, *v->constant())) : v);
    for (int64_t n = 0; copied.size() < kMostUnrolled; n++) {
      const std::string prefix = cat(loop.name, "_", n, "_");
      const auto condition = known_condition(*MOKA_TRY(inline_block(builder, *loop.block(0), vars, prefix, fold))[0]);
      if (!condition) break;
      if (!*condition) return vars;
      vars = MOKA_TRY(inline_block(builder, *loop.block(1), vars, prefix, fold));
    }
    for (auto op = copied.rbegin(); op != copied.rend(); ++op) loop.parent()->erase(*op);
    return std::vector<Value*>();
  }

  const OpTable& table_;
};

}  // namespace

Status specialize(Function& function, std::span<const Type> inputs, const OpTable& table) {
  for (size_t i = 0; i < inputs.size(); i++) function.body().inputs()[i]->type = inputs[i];
  return Specializer(table).run(function.body());
}

}  // namespace moka::ir
