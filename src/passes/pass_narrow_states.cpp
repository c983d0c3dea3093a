// SPDX-License-Identifier: Apache-2.0
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Keeps updates and slices of float16 states in float16, in programs that compute in float32. Otherwise a whole state
/// would be cast to float32 to read or replace a part of it. The cast moves after a slice that is taken of the state,
/// and from the state to the update that is written into it. What the state holds stays the same.
namespace moka::passes {

namespace {

using namespace ir;

bool is_cast(const Op* op, DType from, DType to) {
  return op != nullptr && op->type_name() == "cast" && op->input("x")->type.is_tensor() &&
         op->input("x")->type.dtype() == from && op->output()->type.dtype() == to;
}

/// Whether a value is a state's value, perhaps with parts replaced, in float16.
bool is_of_state(const Value& v) {
  const Op* op = v.producer();
  return op != nullptr && (op->type_name() == "read_state" || op->type_name() == "slice_update");
}

/// The state's value that is cast to float32; nullptr: there is none.
Value* narrow_source(const Value* x) {
  if (x == nullptr || !is_cast(x->producer(), DType::fp16, DType::fp32)) return nullptr;
  Value* half = x->producer()->input("x");
  return is_of_state(*half) ? half : nullptr;
}

std::vector<NamedArg> arguments_of(const Op& op, Value* x, Value* update) {
  std::vector<NamedArg> args;
  for (const Operand& o : op.operands()) {
    const std::string& name = op.version().params[static_cast<size_t>(o.param)].name;
    Value* v = name == "x" ? x : name == "update" ? update : o.values[0];
    if (v->is_inline_constant())
      args.emplace_back(name, *v->constant());
    else
      args.emplace_back(name, v);
  }
  return args;
}

bool only_becomes_half(const Value& v) {
  if (v.users().empty() || !v.returned_by().empty()) return false;
  for (const Op* user : v.users())
    if (!is_cast(user, DType::fp32, DType::fp16)) return false;
  return true;
}

Status narrow(PassContext& c, Op& op) {
  const bool updates = op.type_name() == "slice_update";
  if (!updates && op.type_name() != "slice_by_index" && op.type_name() != "slice_by_size") return {};
  Value* half = narrow_source(op.input("x"));
  if (half == nullptr || (updates && !only_becomes_half(*op.output()))) return {};
  Builder before = Builder::before(c.table, op);
  Value* update = nullptr;
  if (updates)
    update = MOKA_TRY(before.op("cast", {{"x", op.input("update")}, {"dtype", "fp16"}}, cat(op.name, "_update_fp16")));
  Value* made = MOKA_TRY(before.op(op.type_name(), arguments_of(op, half, update), cat(op.name, "_fp16")));
  if (updates) {
    for (Op* cast : op.output()->users()) Function::replace_all_uses(cast->output(), made);
  } else {
    Value* wide = MOKA_TRY(before.op("cast", {{"x", made}, {"dtype", "fp32"}}, cat(op.name, "_fp32")));
    take_name(*wide, *op.output());
    replace_and_erase(op, wide);
  }
  c.remark(cat(made->name, " stays in float16"));
  return {};
}

Status narrow_states(PassContext& c) {
  Status status;
  for_each_op(c.function.body(), [&](Op& op) {
    if (status.ok()) status = narrow(c, op);
  });
  return status;
}

}  // namespace

Pass pass_narrow_states() { return {"narrow_states", narrow_states}; }

}  // namespace moka::passes
