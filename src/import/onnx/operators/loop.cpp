// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/subgraph.h"

namespace moka::import::onnx {
namespace {

/// Whether the body of a loop passes its condition on, or sets it to true.
bool goes_on(const Graph& body) {
  if (body.outputs.empty() || body.inputs.size() < 2) return false;
  std::string name = body.outputs[0].name;
  for (size_t i = body.nodes.size(); i-- > 0;) {
    const format::onnx::Node& node = body.nodes[i];
    if (std::find(node.outputs.begin(), node.outputs.end(), name) == node.outputs.end()) continue;
    if (node.op_type == "Constant") return true;  // the first iteration tells its value
    if (node.op_type != "Identity" && node.op_type != "Cast") return false;
    name = node.inputs.at(0);
  }
  return name == body.inputs[1].name ||
         std::any_of(body.initializers.begin(), body.initializers.end(), [&](const auto& t) { return t.name == name; });
}

void unrolled(Node& n, const Graph& body, int64_t count) {
  const size_t carried = n.inputs() - 2;
  std::vector<Item> state;
  for (size_t i = 0; i < carried; ++i) state.push_back(n.item(i + 2));
  std::vector<std::vector<Item>> scans(body.outputs.size() - 1 - carried);
  for (int64_t k = 0; k < count; ++k) {
    std::vector<Item> inputs{{nullptr, Tensor::scalar_i64(DType::int64, k), DataType::int64},
                             {nullptr, Tensor::boolean(true), DataType::boolean}};
    inputs.insert(inputs.end(), state.begin(), state.end());
    std::vector<Item> out = inlined(n, body, inputs);
    for (size_t i = 0; i < carried; ++i) state[i] = out[i + 1];
    for (size_t i = 0; i < scans.size(); ++i) scans[i].push_back(out[i + 1 + carried]);
    Item& going = out[0];
    const Tensor* flag = going.is_constant()      ? &going.tensor
                         : going.value != nullptr ? constant_of(going.value)
                                                  : nullptr;
    if (flag != nullptr && ir::load_i64(flag->view(), 0) == 0) break;
  }
  for (size_t i = 0; i < carried; ++i)
    if (n.wants(i)) n.set(i, state[i]);
  for (size_t i = 0; i < scans.size(); ++i) {
    if (!n.wants(carried + i)) continue;
    if (scans[i].empty()) n.unsupported("a loop without iterations that collects values");
    n.set(carried + i, stacked(n, scans[i], 0));
  }
}

/// The types that one iteration gives, without the condition: those of what the loop carries and of what it collects.
/// The body is imported once for them and removed again, as it need not declare them.
std::vector<ir::Type> types_of_iteration(const Node& n, const Graph& body, std::vector<Item> inputs) {
  const ir::Block& block = n.scope.builder.block();
  const ir::Op* last = block.ops().empty() ? nullptr : block.ops().back().get();
  const auto sizes = n.scope.context.sizes;
  // Values that no node computes stand for what an iteration gets.
  const auto unknown = [&](Tensor t) {
    return need(
        n.scope.builder.op("identity", {{"x", std::move(t)}}, n.scope.builder.function().unique_name("unknown")));
  };
  inputs.insert(inputs.begin(), {Item{unknown(Tensor::scalar_i64(DType::int32, 0)), {}, DataType::int64},
                                 Item{unknown(Tensor::boolean(true)), {}, DataType::boolean}});
  std::vector<ir::Type> out;
  std::vector<Item> results = inlined(n, body, inputs);
  for (size_t i = 1; i < results.size(); ++i) out.push_back(n.scope.value(results[i], body.outputs[i].name)->type);
  while (!block.ops().empty() && block.ops().back().get() != last)
    n.scope.builder.block().erase(block.ops().back().get());
  n.scope.context.sizes = sizes;
  return out;
}

/// Whether the body declares sizes of a carried value as unknown that are known before the first iteration.
bool may_change(const Value* first, const format::onnx::ValueInfo& declared) {
  const auto& shape = declared.type.shape;
  if (!shape || !first->type.is_tensor() || !first->type.is_ranked() ||
      shape->size() != first->type.shape().dims().size())
    return false;
  for (size_t i = 0; i < shape->size(); ++i)
    if (!(*shape)[i].value && first->type.shape()[static_cast<int>(i)] >= 0) return true;
  return false;
}

/// The types of carried values in the blocks. If an iteration changes a size, all sizes that the body does not declare
/// are unknown.
std::vector<ir::Type> carried_types(const std::vector<Value*>& first, const Graph& body,
                                    const std::vector<ir::Type>& after) {
  std::vector<ir::Type> out;
  bool changes = false;
  for (size_t i = 0; i < first.size(); ++i) {
    out.push_back(first[i]->type);
    changes |= may_change(first[i], body.inputs[i + 2]) && i < after.size() && !(after[i] == out.back());
  }
  for (size_t i = 0; i < first.size() && changes; ++i)
    for (size_t d = 0; may_change(first[i], body.inputs[i + 2]) && d < body.inputs[i + 2].type.shape->size(); ++d)
      if (!(*body.inputs[i + 2].type.shape)[d].value) out[i].shape()[static_cast<int>(d)] = ir::kAnyDim;
  return out;
}

/// The shape of what a loop collects in each iteration, which must be known before the loop runs.
Shape element_shape(const Node& n, const format::onnx::ValueInfo& info, const ir::Type& type) {
  if (type.is_ranked() && type.shape().is_concrete()) return type.shape();
  Shape out;
  if (!info.type.shape)
    n.unsupported(cat("output '", info.name, "' of the loop's body: expected a known shape, got ", type));
  for (const auto& d : *info.type.shape) {
    if (!d.value || out.rank() == ir::kMaxRank)
      n.unsupported(cat("output '", info.name, "' of the loop's body: its declared shape is not known"));
    out.push_back(*d.value);
  }
  return out;
}

void while_loop(Node& n, const Graph& body) {
  const size_t carried = n.inputs() > 2 ? n.inputs() - 2 : 0;
  if (body.outputs.size() < 1 + carried) n.malformed("the body has fewer outputs than the loop carries values");
  const size_t scans = body.outputs.size() - 1 - carried;
  const auto scalar = [&](Value* v) { return n.rank(v) == 0 ? v : n.reshape(v, {}); };
  Value* limit = n.has(0) ? scalar(n.in(0)) : nullptr;
  Value* going = n.has(1) ? scalar(n.in(1)) : n.constant(Tensor::boolean(true));
  std::vector<Value*> vars{n.constant(Tensor::scalar_i64(DType::int32, 0)), going};
  std::vector<DataType> types;
  std::vector<Item> state;
  for (size_t i = 0; i < carried; ++i) {
    vars.push_back(n.in(i + 2));
    types.push_back(n.type(i + 2));
    state.push_back({vars.back(), {}, types.back()});
  }
  if (body.inputs.size() != carried + 2)
    n.malformed(cat("the body has ", body.inputs.size(), " inputs, expected ", carried + 2));
  bool needs_types = scans > 0;
  for (size_t i = 0; i < carried; ++i) needs_types |= may_change(vars[i + 2], body.inputs[i + 2]);
  const std::vector<ir::Type> given =
      needs_types ? types_of_iteration(n, body, std::move(state)) : std::vector<ir::Type>();
  const std::vector<ir::Type> collected(given.begin() + static_cast<std::ptrdiff_t>(std::min(carried, given.size())),
                                        given.end());
  std::vector<ir::Type> block_types = carried_types({vars.begin() + 2, vars.end()}, body, given);
  block_types.insert(block_types.begin(), {vars[0]->type, vars[1]->type});
  std::vector<bool> is_scalar;
  for (size_t i = 0; i < scans; ++i) {
    const auto& info = body.outputs[1 + carried + i];
    types.push_back(info.type.element);
    const Shape shape = element_shape(n, info, collected[i]);
    std::vector<Value*> sizes;
    for (const int64_t d : shape) sizes.push_back(n.constant(Tensor::scalar_i64(DType::int32, d)));
    // Lists hold no scalars, but vectors of one element.
    is_scalar.push_back(sizes.empty());
    if (sizes.empty()) sizes.push_back(n.constant(Tensor::scalar_i64(DType::int32, 1)));
    NamedArg elements("elem_shape", sizes);
    elements.tuple = true;
    vars.push_back(n.op("make_list", {{"init_length", 1},
                                      {"dynamic_length", true},
                                      elements,
                                      {"dtype", std::string(ir::to_string(collected[i].dtype()))}}));
  }
  const ir::Op* op = append_while_loop(
      n, vars,
      [&](const Node& at, size_t block, const std::vector<Value*>& in) {
        if (block == 0)
          return std::vector<Value*>{limit == nullptr
                                         ? at.unary("identity", in[1])
                                         : at.binary("logical_and", at.binary("less", in[0], limit), in[1])};
        Scope& inner = at.scope;
        inner.add(body.inputs[0].name, Item{in[0], {}, DataType::int64});
        inner.add(body.inputs[1].name, Item{in[1], {}, DataType::boolean});
        for (size_t i = 0; i < carried; ++i) inner.add(body.inputs[i + 2].name, Item{in[i + 2], {}, types[i]});
        run_graph(inner, body);
        std::vector<Value*> out{at.add(in[0], 1)};
        Value* on = inner.result(body.outputs[0].name);
        out.push_back(at.rank(on) == 0 ? on : at.reshape(on, {}));
        for (size_t i = 0; i < carried; ++i) out.push_back(inner.result(body.outputs[i + 1].name));
        for (size_t i = 0; i < scans; ++i) {
          Value* v = inner.result(body.outputs[1 + carried + i].name);
          if (is_scalar[i]) v = at.expand_dims(v, {0});
          out.push_back(at.op("list_write", {{"ls", in[2 + carried + i]}, {"index", in[0]}, {"value", v}}));
        }
        return out;
      },
      block_types);
  for (size_t i = 0; i < carried; ++i) n.set(i, op->output(i + 2), types[i]);
  for (size_t i = 0; i < scans; ++i) {
    if (!n.wants(carried + i)) continue;
    Value* all = n.op("range_1d", {{"end", op->output(0)}, {"start", 0}, {"step", 1}});
    Value* elements = n.op("list_gather", {{"ls", op->output(2 + carried + i)}, {"indices", all}});
    n.set(carried + i, is_scalar[i] ? n.squeeze(elements, {1}) : elements, types[carried + i]);
  }
}

/// Loops of few known iterations are written out, so that sizes inside them are known.
void loop(Node& n) {
  constexpr int64_t most = 64;
  const Graph& body = graph_of(n, "body");
  const Tensor* count = n.has(0) ? n.constant(0) : nullptr;
  const Tensor* start = n.has(1) ? n.constant(1) : nullptr;
  const bool starts = !n.has(1) || (start != nullptr && ir::load_i64(start->view(), 0) != 0);
  const int64_t k = count != nullptr ? ir::load_i64(count->view(), 0) : most + 1;
  if (n.inputs() < 2) n.malformed("expected two inputs or more");
  if (body.outputs.size() < n.inputs() - 1) n.malformed("the body has fewer outputs than the loop carries values");
  if (starts && k > 0 && k <= most && goes_on(body)) return unrolled(n, body, k);
  for (size_t i = 2; i < n.inputs(); ++i) {
    if (!n.has(i) || !(n.item(i).is_sequence || n.item(i).is_absent)) continue;
    // The iterations of such a loop are written out, so they must be known.
    if (n.has(0) && count == nullptr) n.computed_parameter(0, "the iterations of a loop that carries a sequence");
    if (n.has(1) && start == nullptr) n.computed_parameter(1, "the condition of a loop that carries a sequence");
    n.unsupported("a loop that carries a sequence and whose iterations are not known");
  }
  while_loop(n, body);
}

constexpr OperatorImport kLoopOperators[] = {
    {"Loop", loop},
};

}  // namespace

std::span<const OperatorImport> operators_loop() { return kLoopOperators; }

}  // namespace moka::import::onnx
