#include "update/cut.h"

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

std::string name_between(size_t i) { return cat("between_", i); }

auto described(const std::string& name, const ir::Type& type) {
  import::FeatureDescription f;
  f.name = name;
  f.array.dtype = type.dtype();
  return f;
}

Status sweep(ir::Function& f) {
  std::vector<passes::Remark> remarks;
  MOKA_TRY(passes::run_pass(f, "remove_dead_code", ops::table(), remarks));
  f.body().erase_unused_inputs();
  return {};
}

}  // namespace

Parts parts_of(const ir::Function& function) {
  const ir::Block& body = function.body();
  const Dependences depends(body);
  Parts out;
  std::unordered_set<const Value*> seen;
  std::vector<Value*> left(body.outputs().begin(), body.outputs().end());
  while (!left.empty()) {
    Value* v = left.back();
    left.pop_back();
    if (v->is_inline_constant() || !seen.insert(v).second) continue;
    const Op* op = v->producer();
    if (op == nullptr ? v->block() == &body
                      : op->parent() == &body && depends.on_inputs.contains(op) && !depends.on_parameters.contains(op))
      out.between.push_back(v);
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
  for (Value* v : parts_of(f).between) {
    d.outputs.push_back(described(name_between(outputs.size()), v->type));
    outputs.push_back(v->producer() != nullptr ? v : MOKA_TRY(builder.op("identity", {{"x", v}})));
  }
  f.body().set_outputs(std::move(outputs));
  std::vector<passes::Remark> remarks;
  return passes::run_pass(f, "remove_dead_code", ops::table(), remarks);
}

Status keep_head(import::ImportedModel& model) {
  ir::Function& f = *model.program.functions[0];
  import::FunctionDescription& d = model.description.functions[0];
  const Parts parts = parts_of(f);
  d.inputs.clear();
  for (size_t i = 0; i < parts.between.size(); i++) {
    Value* v = parts.between[i];
    const std::string name = name_between(i);
    Value* input = f.body().add_input(f.unique_name(name), v->type);
    if (input->name != name) return fail(ErrorCode::unsupported, "the network has a value '", name, "'");
    d.inputs.push_back(described(name, v->type));
    ir::Function::replace_all_uses(v, input);
  }
  return sweep(f);
}

}  // namespace moka::update
