// SPDX-License-Identifier: Apache-2.0
#include "update/cut.h"

#include <algorithm>
#include <unordered_set>

#include "ir/op_def.h"
#include "passes/pass.h"

namespace moka::update {

namespace {

using ir::Op;
using ir::Value;

/// Calls `visit` for every value that an operation reads, those inside its blocks too.
template <class Visit>
void for_each_read(const Op& op, const Visit& visit) {
  for (const ir::Operand& operand : op.operands())
    for (Value* v : operand.values) visit(*v);
  for (size_t i = 0; i < op.block_count(); i++) {
    for (const auto& inner : op.block(i)->ops()) for_each_read(*inner, visit);
    for (Value* v : op.block(i)->outputs()) visit(*v);
  }
}

/// The operations of a body whose results depend on a parameter, and those that read numbers of an input.
struct Dependences {
  std::unordered_set<const Op*> on_parameters, on_inputs;

  explicit Dependences(const ir::Block& body) {
    for (const auto& op : body.ops()) {
      bool parameter = op->has_trait(ir::Trait::parameter), input = op->has_trait(ir::Trait::random);
      for_each_read(*op, [&](const Value& v) {
        parameter |= on_parameters.contains(v.producer());
        input |= v.block() == &body || on_inputs.contains(v.producer());
      });
      if (parameter) on_parameters.insert(op.get());
      if (input && !op->has_trait(ir::Trait::types_only)) on_inputs.insert(op.get());
    }
  }
};

std::string name_between(size_t i) { return cat("between/", i); }

auto described(const std::string& name, const ir::Type& type) {
  import::FeatureDescription f;
  f.name = name;
  f.array.dtype = type.dtype();
  return f;
}

/// Where a reshape keeps one example, it keeps any number of them. The only axis of a vector stays the last one.
void take_examples(Op& op) {
  if (op.type_name() == "softmax" && op.input("x")->type.is_ranked() && op.input("x")->type.rank() == 1)
    op.set_constant("axis", ir::Tensor::scalar_i64(ir::DType::int32, -1));
  const ir::Value* shape = op.type_name() == "reshape" ? op.input("shape") : nullptr;
  if (shape == nullptr || shape->constant() == nullptr) return;
  const ir::Tensor& known = shape->constant()->tensor;
  ir::Ints sizes;
  for (int64_t i = 0; i < known.count(); i++) sizes.push_back(ir::load_i64(known.view(), i));
  if (sizes.empty() || sizes[0] != 1 || std::find(sizes.begin(), sizes.end(), -1) != sizes.end()) return;
  sizes[0] = -1;
  op.set_constant("shape", ir::Tensor::i32({sizes.begin(), sizes.end()}));
}

Status sweep(ir::Function& f) {
  std::vector<passes::Remark> remarks;
  MOKA_TRY(passes::run_pass(f, "remove_dead_code", ops::table(), remarks));
  f.body().erase_unused_inputs();
  return {};
}

}  // namespace

std::vector<Value*> between(const ir::Function& function) {
  const ir::Block& body = function.body();
  const Dependences depends(body);
  std::vector<Value*> out;
  std::unordered_set<const Value*> seen;
  std::vector<Value*> left(body.outputs().begin(), body.outputs().end());
  while (!left.empty()) {
    Value* v = left.back();
    left.pop_back();
    if (v->is_inline_constant() || !seen.insert(v).second) continue;
    const Op* op = v->producer();
    if (op == nullptr ? v->block() == &body
                      : op->parent() == &body && depends.on_inputs.contains(op) && !depends.on_parameters.contains(op))
      out.push_back(v);
    else if (op != nullptr)
      for_each_read(*op, [&](Value& read) { left.push_back(&read); });
  }
  return out;
}

Status keep_front(import::ImportedModel& model) {
  ir::Function& f = *model.program.functions[0];
  import::FunctionDescription& d = model.description.functions[0];
  std::vector<Value*> outputs;
  d.outputs.clear();
  ir::Builder builder(ops::table(), f.body());
  for (Value* v : between(f)) {
    d.outputs.push_back(described(name_between(outputs.size()), v->type));
    outputs.push_back(v->producer() != nullptr ? v : MOKA_TRY(builder.op("identity", {{"x", v}})));
  }
  f.body().set_outputs(std::move(outputs));
  MOKA_TRY(sweep(f));
  std::erase_if(d.inputs, [&](const import::FeatureDescription& described) {
    const auto inputs = f.body().inputs();
    return std::none_of(inputs.begin(), inputs.end(), [&](const auto& v) { return v->name == described.name; });
  });
  return {};
}

Status keep_head(import::ImportedModel& model) {
  ir::Function& f = *model.program.functions[0];
  import::FunctionDescription& d = model.description.functions[0];
  const std::vector<Value*> read = between(f);
  d.inputs.clear();
  for (size_t i = 0; i < read.size(); i++) {
    Value* v = read[i];
    const std::string name = name_between(i);
    Value* input = f.body().add_input(f.unique_name(name), v->type);
    if (input->name != name) return fail(ErrorCode::unsupported, "the network has a value '", name, "'");
    d.inputs.push_back(described(name, v->type));
    ir::Function::replace_all_uses(v, input);
  }
  MOKA_TRY(sweep(f));
  for (const auto& op : f.body().ops()) take_examples(*op);
  return {};
}

}  // namespace moka::update
