// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "ir/evaluate.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Replaces operations on constants by their results, if these are small. Operations that depend on them may then know
/// their shapes. Results beyond kMaxResult are left to the kernel that packs them.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kMaxResult = 64 * 1024;
constexpr size_t kMaxInput = 1024 * 1024;

bool may_fold(const Op& op) {
  for (Trait t :
       {Trait::constant, Trait::constexpr_weight, Trait::random, Trait::stateful, Trait::control, Trait::parameter})
    if (op.has_trait(t)) return false;
  if (!op.version().reference || op.output_count() == 0) return false;
  size_t total = 0;
  for (size_t i = 0; i < op.output_count(); i++) {
    const Type& t = op.output(i)->type;
    if (!t.is_tensor()) return false;
    if (!t.is_concrete()) continue;
    const auto bytes = storage_bytes(t.dtype(), t.shape());
    if (!bytes || *bytes > kMaxResult) return false;
    total += *bytes;
  }
  return total <= kMaxResult;
}

/// The inputs if all are constants of moderate size.
bool gather(const Op& op, std::vector<RuntimeValue>& inputs) {
  size_t total = 0;
  for (const Operand& o : op.operands())
    for (const Value* v : o.values) {
      const Tensor* t = tensor_constant(v);
      if (t == nullptr || (total += t->bytes()) > kMaxInput) return false;
      inputs.emplace_back(*t);
    }
  return true;
}

class ConstantFolder {
 public:
  explicit ConstantFolder(PassContext& c) : c_(c) {}

  Status run() {
    MOKA_TRY(try_each_op(c_.function.body(), [this](Op& op) { return visit(op); }));
    if (folded_ > 0) c_.remark(cat(folded_, folded_ == 1 ? " operation" : " operations"));
    return {};
  }

 private:
  Status visit(Op& op) {
    if (op.has_trait(Trait::constant)) return {};
    if (op.block_count() == 0 && stale_.erase(&op) > 0) {
      // An invalid value is an error only if the operation runs.
      const auto changed = refresh_types(op);
      for (size_t i = 0; i < op.output_count() && changed && *changed; i++) touch(*op.output(i));
    }
    return may_fold(op) ? fold(op) : Status();
  }

  void touch(const Value& v) { stale_.insert(v.users().begin(), v.users().end()); }

  Status fold(Op& op) {
    std::vector<RuntimeValue> results;
    if (op.type_name() == "shape") {
      const Value* x = op.input("x");
      if (!x->type.is_tensor() || !x->type.is_concrete()) return {};
      results.emplace_back(Tensor::i32(x->type.shape().dims()));
      if (results[0].tensor.dtype() != op.output()->type.dtype()) return {};
    } else {
      std::vector<RuntimeValue> inputs;
      if (!gather(op, inputs)) return {};
      MemoryBudget budget(kMaxResult);
      EvaluateOptions options;
      options.table = &c_.table;
      options.budget = &budget;
      // An operation that fails here may never run. If it does, it fails then.
      auto out = evaluate_op(op, inputs, options);
      if (!out || out->size() != op.output_count()) return {};
      results = std::move(*out);
    }
    for (size_t i = 0; i < results.size(); i++)
      if (results[i].tensor.empty_handle() || !is_compatible(results[i].type({}), op.output(i)->type)) return {};
    for (size_t i = 0; i < results.size(); i++) {
      Value* old = op.output(i);
      Builder before = Builder::before(c_.table, op);
      Value* made = MOKA_TRY(before.constant(old->name, std::move(results[i].tensor)));
      take_name(*made, *old);
      made->producer()->name = op.name;
      touch(*old);
      Function::replace_all_uses(old, made);
    }
    stale_.erase(&op);
    op.parent()->erase(&op);
    folded_++;
    return {};
  }

  PassContext& c_;
  std::unordered_set<const Op*> stale_;  ///< operations with an operand that has become known
  int folded_ = 0;
};

Status fold_constants(PassContext& c) { return ConstantFolder(c).run(); }

}  // namespace

Pass pass_fold_constants() { return {"fold_constants", fold_constants}; }

}  // namespace moka::passes
