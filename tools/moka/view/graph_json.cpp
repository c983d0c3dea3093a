// SPDX-License-Identifier: Apache-2.0
#include "view/document.h"

namespace moka::cli {
namespace {

std::string_view kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::operation: return "operation";
    case NodeKind::input: return "input";
    case NodeKind::output: return "output";
    case NodeKind::model: return "model";
    case NodeKind::block: return "block";
    case NodeKind::repeat: return "repeat";
    case NodeKind::scope: return "scope";
    case NodeKind::port: return "port";
  }
  return "operation";
}

Json node_json(const GraphNode& node) {
  Json json{{"kind", kind_name(node.kind)}, {"name", node.name}, {"type", node.type},
            {"parent", node.parent},        {"rank", node.rank}, {"lane", node.lane}};
  if (!node.members.empty()) json["operations"] = node.operations;
  if (!node.inputs.empty()) json["inputs"] = node.inputs;
  if (!node.outputs.empty()) json["outputs"] = node.outputs;
  if (!node.values.empty()) json["values"] = node.values;
  if (!node.weights.empty()) json["weights"] = node.weights;
  return json;
}

}  // namespace

Json to_json(const Graph& graph) {
  Json json{{"name", graph.name}, {"nodes", Json::array()}, {"edges", Json::array()}, {"weights", Json::array()}};
  for (const GraphNode& node : graph.nodes) json["nodes"].push_back(node_json(node));
  // [from, to, value], and the lane of a long edge.
  for (const GraphEdge& e : graph.edges) {
    Json edge = Json::array({e.from, e.to, e.value});
    if (e.is_long) edge.push_back(e.lane);
    json["edges"].push_back(std::move(edge));
  }
  for (const GraphWeight& w : graph.weights) {
    Json weight{{"name", w.weight->name},
                {"type", w.weight->type},
                {"bytes", w.weight->bytes},
                {"storage", w.weight->storage},
                {"index", w.index}};
    if (!w.models.empty()) weight["models"] = w.models;
    if (!w.weight->available) weight["available"] = false;
    json["weights"].push_back(std::move(weight));
  }
  return json;
}

}  // namespace moka::cli
