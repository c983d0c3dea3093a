// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

/// The value as a tensor of rank 0: ONNX takes conditions of no other shape, MIL takes any one element.
Name condition(Call& c, const ir::Value* v) {
  return v->type.is_ranked() && v->type.rank() == 0 ? c.x(v) : c.reshape(c.x(v), {});
}

/// The tensors of a block's outputs, as outputs of the inner graph that is open. A graph's output has to be the result
/// of one of its own nodes.
void add_outputs(Call& c, std::span<ir::Value* const> values, std::vector<ox::ValueInfo>& out) {
  for (const ir::Value* v : values) {
    const Name inner = c.graph.nodes("Identity", {c.x(v)}, {}, 1, v->name)[0];
    out.push_back(value_info(inner, c.graph.type_of(v)));
  }
}

bool writes_state(const ir::Block& block) {
  for (const auto& op : block.ops()) {
    if (op->type_name() == "coreml_update_state" || op->type_name() == "write_state") return true;
    for (size_t i = 0; i < op->block_count(); i++)
      if (writes_state(*op->block(i))) return true;
  }
  return false;
}

bool check(Call& c) {
  for (size_t i = 0; i < c.op.block_count(); i++)
    if (writes_state(*c.op.block(i))) c.refuse("one of its blocks writes a state");
  for (size_t i = 0; i < c.op.output_count(); i++)
    if (!c.out(i).is_tensor() && !c.out(i).is_list()) c.refuse(cat("it gives a value of type ", c.out(i)));
  return !c.refused();
}

void cond(Call& c) {
  if (!check(c)) return;
  ox::Graph branches[2];
  for (size_t i = 0; i < 2; i++) {
    const ir::Block& block = *c.op.block(i);
    c.graph.open();
    write_block(c.graph, block, c.inner, c.inner_operations);
    std::vector<ox::ValueInfo> outputs;
    if (c.inner.empty()) add_outputs(c, block.outputs(), outputs);
    branches[i] = c.graph.close(cat(c.op.name, i == 0 ? "_then" : "_else"));
    branches[i].outputs = std::move(outputs);
  }
  const std::vector<Name> y = c.nodes(
      "If", {condition(c, c.op.input("pred"))},
      {attr("then_branch", std::move(branches[0])), attr("else_branch", std::move(branches[1]))}, c.op.output_count());
  for (size_t i = 0; i < y.size(); i++) {
    const ir::Value* inner = c.op.block(0)->outputs()[i];
    if (const auto list = c.graph.represented.find(inner); list != c.graph.represented.end()) {
      const ir::Type type = list->second;
      c.graph.represented[c.op.output(i)] = type;
    }
    c.set(y[i], i);
  }
}

/// MIL computes the condition before each iteration. Loop takes it as an input for the first iteration, and each
/// iteration computes it for the next one.
void while_loop(Call& c) {
  if (!check(c)) return;
  const ir::Block &test = *c.op.block(0), &body = *c.op.block(1);
  const auto first = c.op.inputs("loop_vars");
  std::vector<Name> inputs{Name(), Name()};
  for (size_t i = 0; i < first.size(); i++) {
    inputs.push_back(c.x(first[i]));
    c.graph.set(test.inputs()[i].get(), inputs.back());
    // A list may grow from one iteration to the next.
    if (const auto list = c.graph.represented.find(first[i]); list != c.graph.represented.end()) {
      const ir::Type type = list->second;
      for (const ir::Value* v : {test.inputs()[i].get(), body.inputs()[i].get(), c.op.output(i)})
        c.graph.represented[v] = type;
    }
  }
  write_block(c.graph, test, c.inner, c.inner_operations);
  inputs[1] = condition(c, test.outputs()[0]);

  c.graph.open();
  std::vector<ox::ValueInfo> in{value_info(c.graph.fresh(c.op.name + "/turn"), ir::Type::scalar(DType::int64)),
                                value_info(c.graph.fresh(c.op.name + "/go"), ir::Type::scalar(DType::boolean))};
  for (const auto& v : body.inputs()) {
    const Name name = c.graph.claim(v->name) ? v->name : c.graph.fresh(v->name);
    in.push_back(value_info(name, c.graph.type_of(v.get())));
    c.graph.set(v.get(), name);
  }
  write_block(c.graph, body, c.inner, c.inner_operations);
  std::vector<ox::ValueInfo> out;
  if (c.inner.empty()) {
    for (size_t i = 0; i < body.outputs().size(); i++) c.graph.set(test.inputs()[i].get(), c.x(body.outputs()[i]));
    // The body ends with the condition, which is written again for the values of the next iteration.
    write_block(c.graph, test, c.inner, c.inner_operations);
    const Name goes_on =
        c.graph.nodes("Identity", {condition(c, test.outputs()[0])}, {}, 1, test.outputs()[0]->name)[0];
    out.push_back(value_info(goes_on, ir::Type::scalar(DType::boolean)));
    add_outputs(c, body.outputs(), out);
  }
  ox::Graph inner = c.graph.close(c.op.name + "_body");
  inner.inputs = std::move(in);
  inner.outputs = std::move(out);
  const std::vector<Name> y = c.nodes("Loop", std::move(inputs), {attr("body", std::move(inner))}, c.op.output_count());
  for (size_t i = 0; i < y.size(); i++) c.set(y[i], i);
}

const ir::Value* state_of(Call& c) {
  const ir::Value* v = c.op.input(c.op.version().params[0].name);
  if (!c.graph.states.contains(v)) c.refuse("its state is not an input of the function");
  return v;
}

void read_state(Call& c) { c.set(c.graph.states[state_of(c)]); }

void update_state(Call& c) {
  const ir::Value* state = state_of(c);
  c.graph.states[state] = c.x("value");
  c.set(c.x("value"));
}

void write_state(Call& c) {
  const ir::Value* state = state_of(c);
  c.graph.states[state] = c.x("data");
}

void classify_by_label(Call& c) {
  const ir::Value* classes = c.op.input("classes");
  const ir::Constant* list = classes == nullptr ? nullptr : classes->constant();
  if (list == nullptr) return c.refuse("its labels are not a constant");
  ir::Tensor labels = list->tensor;
  if (labels.empty_handle()) {
    const auto n = static_cast<int64_t>(list->parts.size());
    const DType t = c.out().dtype();
    if (t == DType::string) {
      std::vector<std::string> texts;
      for (const ir::Constant& part : list->parts) texts.push_back(part.tensor.text());
      labels = ir::Tensor::strings({n}, std::move(texts));
    } else {
      labels = c.take(ir::Tensor::zeros(t, {n}));
      for (int64_t i = 0; i < n && !c.refused(); i++)
        ir::store_i64(labels.view(), i, ir::load_i64(list->parts[static_cast<size_t>(i)].tensor.view(), 0));
    }
  }
  if (c.refused()) return;
  const int64_t n = labels.count();
  const ir::Type& p = c.type("probabilities");
  const Name flat = p.is_ranked() && p.rank() == 1 ? c.x("probabilities") : c.reshape(c.x("probabilities"), {n});
  const Name best = c.node("ArgMax", {flat}, {attr("axis", 0), attr("keepdims", 0)});
  c.set(c.node("Gather", {c.graph.tensor(labels), best}), 0);
  c.set(flat, 1);
  c.graph.represented[c.op.output(1)] = ir::Type::tensor(p.dtype(), {n});
}

}  // namespace

std::span<const OpWriter> writers_control();
std::span<const OpWriter> writers_control() {
  static constexpr OpWriter list[] = {
      {"cond", cond},
      {"while_loop", while_loop},
      {"read_state", read_state},
      {"coreml_update_state", update_state},
      {"write_state", write_state},
      {"classify", classify_by_label},
  };
  return list;
}

}  // namespace moka::compiler::onnx
