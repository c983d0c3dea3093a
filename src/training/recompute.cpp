// SPDX-License-Identifier: Apache-2.0
#include "training/recompute.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/fixed.h"

namespace moka::training {

namespace {

using namespace ir;

bool is_cheap(const Op& op) {
  return op.block_count() == 0 && op.output_count() > 0 && !op.has_trait(Trait::random) &&
         !op.has_trait(Trait::stateful) && !op.has_trait(Trait::alias) && !op.has_trait(Trait::costly);
}

class Recomputer {
 public:
  Recomputer(Function& function, const Op& loss, const OpTable& table) : table_(table) {
    bool is_forward = true;
    for (const auto& op : function.body().ops()) {
      if (is_forward)
        forward_.insert(op.get());
      else
        backward_.push_back(op.get());
      is_forward = is_forward && op.get() != &loss;
    }
  }

  Status run() {
    for (Op* op : backward_) {
      std::vector<Value*> read;
      for (const Operand& o : op->operands()) read.insert(read.end(), o.values.begin(), o.values.end());
      for (Value* v : read)
        if (Value* again = MOKA_TRY(of(*v, *op)); again != v) op->replace_input(v, again);
    }
    return {};
  }

 private:
  /// The value, or its copy, which exists before `reader`.
  Result<Value*> of(Value& v, Op& reader) {
    Op* op = v.producer();
    if (op == nullptr || !forward_.contains(op) || is_fixed(v)) return &v;
    if (const auto it = again_.find(&v); it != again_.end()) return it->second;
    if (!may_recompute(*op)) return &v;
    std::vector<NamedArg> args;
    for (const Operand& o : op->operands()) {
      std::vector<Value*> values;
      for (Value* input : o.values) values.push_back(MOKA_TRY(of(*input, reader)));
      const std::string& param = op->version().params[static_cast<size_t>(o.param)].name;
      if (o.tuple)
        args.emplace_back(param, std::move(values));
      else
        args.emplace_back(param, values[0]);
    }
    Builder before = Builder::before(table_, reader);
    before.opset = Opset::ios18;
    Op* made = MOKA_TRY(before.append({op->type_name(), std::move(args), cat(op->name, "_again")}));
    for (size_t i = 0; i < op->output_count(); i++) again_[op->output(i)] = made->output(i);
    return again_.at(&v);
  }

  /// Results that are much smaller than what they are made from stay, or that would have to stay instead.
  bool may_recompute(const Op& op) const {
    if (!is_cheap(op)) return false;
    int64_t out = 0, in = 0;
    for (size_t i = 0; i < op.output_count(); i++) out += op.output(i)->type.shape().count();
    for (const Operand& o : op.operands())
      for (const Value* v : o.values)
        if (v->producer() != nullptr && forward_.contains(v->producer()) && !is_fixed(*v))
          in = std::max(in, v->type.shape().count());
    return out * 4 >= in;
  }

  const OpTable& table_;
  std::unordered_set<const Op*> forward_;
  std::vector<Op*> backward_;
  std::unordered_map<const Value*, Value*> again_;
};

}  // namespace

Status recompute(Function& function, const Op& loss, const OpTable& table) {
  return Recomputer(function, loss, table).run();
}

}  // namespace moka::training
