#include "inspect.h"
#include "io/table.h"
#include "model_facts.h"

namespace moka::cli {
namespace {

/// `statistics`: null for no list.
Json weights_json(const ModelStructure& structure, const std::string& function, const StatisticsReader* statistics) {
  Json json{{"count", 0}, {"bytes", 0}, {"groups", Json::array()}};
  uint64_t bytes = 0;
  int64_t count = 0;
  for (const auto& group : weight_groups(structure, function)) {
    bytes += group.bytes;
    count += group.weights;
    json["groups"].push_back({{"type", group.element},
                              {"storage", group.storage},
                              {"arrays", group.weights},
                              {"parameters", group.parameters},
                              {"bytes", group.bytes}});
  }
  json["count"] = count;
  json["bytes"] = bytes;
  if (!statistics) return json;
  json["list"] = Json::array();
  const auto weights = weights_of(structure, function);
  io::Progress progress("reading weights", weights.size());
  for (const auto* weight : weights) {
    Json entry{{"name", weight->name}, {"type", weight->type}, {"bytes", weight->bytes}, {"storage", weight->storage}};
    if (!weight->path.empty()) entry["path"] = weight->path;
    if (!weight->available) entry["available"] = false;
    if (const auto found = statistics->read(*weight)) entry["statistics"] = to_json(*found);
    json["list"].push_back(std::move(entry));
    progress.advance();
  }
  return json;
}

Json node_json(const Node& node) {
  if (node.layer != nullptr) {
    Json json{{"name", node.layer->name},
              {"type", node.layer->type},
              {"depth", node.depth},
              {"inputs", node.layer->inputs},
              {"outputs", node.layer->outputs}};
    if (!node.layer->custom_class.empty()) json["class"] = node.layer->custom_class;
    return json;
  }
  Json inputs = Json::array(), outputs = Json::array();
  for (const auto& [parameter, values] : node.operation->inputs)
    for (const std::string& value : values) inputs.push_back({{"parameter", parameter}, {"value", value}});
  for (const auto& [value, type] : node.operation->outputs) outputs.push_back({{"value", value}, {"type", type}});
  return {{"name", node.operation->name},
          {"type", node.operation->type},
          {"depth", node.depth},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)}};
}

Json nodes_json(const ModelStructure& structure, const std::string& function, bool list) {
  Json json = Json::object();
  for (const auto& f : structure.functions)
    if (f.name == function) json["opset"] = f.opset;
  const std::vector<Node> nodes = nodes_of(structure, function);
  json["count"] = nodes.size();
  json["byType"] = Json::object();
  for (const auto& [type, count] : type_counts(nodes)) json["byType"][type] = count;
  if (!list) return json;
  json["list"] = Json::array();
  for (const Node& node : nodes) json["list"].push_back(node_json(node));
  return json;
}

/// Adds "operations" or "layers", "weights", "facts", "models" and "faults", each where there are any.
void add_structure(Json& json, const ModelStructure& structure, const std::string& function,
                   const InspectOptions& options, const StatisticsReader* statistics) {
  if (!structure.functions.empty()) json["operations"] = nodes_json(structure, function, options.layers);
  if (!structure.layers.empty()) json["layers"] = nodes_json(structure, function, options.layers);
  if (!structure.facts.empty()) {
    json["facts"] = Json::object();
    for (const auto& [name, value] : structure.facts) json["facts"][name] = value;
  }
  json["weights"] = weights_json(structure, function, statistics);
  for (const auto& part : structure.models) {
    Json model{{"name", part.name}, {"type", part.structure.type}};
    const auto& functions = part.structure.functions;
    add_structure(model, part.structure, functions.empty() ? "" : functions[0].name, options, statistics);
    json["models"].push_back(std::move(model));
  }
  for (const std::string& fault : structure.faults) json["faults"].push_back(fault);
}

}  // namespace

Json inspect_json(const Inspection& inspection, const FunctionDescription& function, const InspectOptions& options) {
  const ModelOutline& outline = inspection.outline();
  const ModelDescription& d = outline.description;
  Json json{
      {"path", options.load.path},
      {"type", d.type},
      {"bytes", size_on_disk(options.load.path)},
      {"specificationVersion", d.specification_version},
      {"requires", systems_for(d.specification_version)},
      {"updatable", d.updatable},
      {"metadata",
       {{"description", d.short_description}, {"author", d.author}, {"license", d.license}, {"version", d.version}}},
      {"userDefined", d.user_defined}};
  json["functions"] = Json::array();
  for (const auto& f : d.functions) json["functions"].push_back(to_json(f));
  json["defaultFunction"] = d.default_function;
  json["function"] = function.name;
  if (!d.class_labels.empty())
    json["classLabels"] = {
        {"type", d.int64_labels ? "Int64" : "String"}, {"count", d.class_labels.size()}, {"labels", d.class_labels}};
  for (const std::string& fault : outline.faults) json["faults"].push_back(fault);
  std::optional<StatisticsReader> statistics;
  if (options.weights) statistics.emplace(inspection);
  add_structure(json, outline.structure, function.name, options, statistics ? &*statistics : nullptr);
  return json;
}

}  // namespace moka::cli
