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

}  // namespace moka::import::onnx
