// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/subgraph.h"

#include "import/onnx/call.h"

namespace moka::import::onnx {

const Graph& graph_of(const Node& n, std::string_view name) {
  const Attribute* a = n.attribute(name);
  if (a == nullptr || a->graphs.empty()) n.malformed(cat("the graph '", name, "' is missing"));
  return a->graphs[0];
}

Scope scope_in(const Node& n, ir::Builder& builder) {
  Scope inner(n.scope.context, builder, n.scope.opsets, &n.scope);
  inner.attributes = n.scope.attributes;
  return inner;
}

std::vector<Item> inlined(const Node& n, const Graph& graph, const std::vector<Item>& inputs) {
  Scope inner = scope_in(n, n.scope.builder);
  if (inputs.size() != graph.inputs.size())
    n.malformed(cat("the graph has ", graph.inputs.size(), " inputs, expected ", inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) inner.add(graph.inputs[i].name, inputs[i]);
  run_graph(inner, graph);
  std::vector<Item> out;
  for (const auto& output : graph.outputs) out.push_back(inner.own(output.name));
  return out;
}

Item stacked(const Node& n, const std::vector<Item>& items, int64_t axis) {
  std::vector<Value*> values;
  for (Item item : items) values.push_back(n.scope.value(item, "scan"));
  if (axis < 0) axis += n.rank(values[0]) + 1;
  return Item{n.op("stack", {NamedArg("values", values), {"axis", static_cast<int>(axis)}}), {}, items[0].type};
}

ir::Op* append_while_loop(const Node& n, const std::vector<Value*>& vars, const LoopBlock& fill,
                          const std::vector<ir::Type>& types) {
  ir::Builder& builder = n.scope.builder;
  const auto name = [&](std::string_view what) {
    return builder.function().unique_name(cat(identifier(n.message.op_type), "_", what));
  };
  std::vector<std::pair<std::string, ir::Type>> inputs;
  for (size_t i = 0; i < vars.size(); ++i)
    inputs.emplace_back(name("var"), i < types.size() ? types[i] : vars[i]->type);
  const std::vector<std::vector<std::pair<std::string, ir::Type>>> block_inputs(2, inputs);
  const ir::Builder::BlockFn fill_block = [&](size_t which, ir::Builder& inside) {
    return guarded([&]() -> std::vector<Value*> {
      std::vector<Value*> in;
      for (const auto& v : inside.block().inputs()) in.push_back(v.get());
      Scope inner = scope_in(n, inside);
      return fill(Node(inner, n.message, n.opset), which, in);
    });
  };
  ir::OpSpec spec{"while_loop", {NamedArg("loop_vars", vars)}, name("loop"), {}, {}};
  spec.args[0].tuple = true;
  return need(builder.append_with_blocks(std::move(spec), block_inputs, fill_block));
}

}  // namespace moka::import::onnx
