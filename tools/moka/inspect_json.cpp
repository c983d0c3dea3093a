// SPDX-License-Identifier: Apache-2.0
#include "inspect.h"
#include "io/table.h"
#include "model_facts.h"
#include "node_facts.h"

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

Json nodes_json(const Inspection& inspection, const ModelStructure& structure, const std::string& function,
                const std::vector<size_t>& models, bool list) {
  Json json = Json::object();
  for (const auto& f : structure.functions)
    if (f.name == function) json["opset"] = f.opset;
  const std::vector<Node> nodes = nodes_of(structure, function);
  json["count"] = nodes.size();
  json["byType"] = Json::object();
  for (const auto& [type, count] : type_counts(nodes)) json["byType"][type] = count;
  if (!list) return json;
  json["list"] = Json::array();
  const NodeReader reader(inspection, structure, function, models);
  for (const Node& node : nodes) json["list"].push_back(node_json(node, reader.facts(node)));
  return json;
}

/// Adds "operations" or "layers", "preprocessing", "weights", "facts", "models" and "faults", each where there are any.
/// `models` leads to the structure through pipelines.
void add_structure(Json& json, const Inspection& inspection, const ModelStructure& structure,
                   const std::string& function, const InspectOptions& options, const StatisticsReader* statistics,
                   std::vector<size_t>& models) {
  const char* nodes = !structure.functions.empty() ? "operations" : !structure.layers.empty() ? "layers" : nullptr;
  if (nodes != nullptr) json[nodes] = nodes_json(inspection, structure, function, models, options.layers);
  if (!structure.preprocessing.empty()) json["preprocessing"] = preprocessing_json(structure);
  if (!structure.facts.empty()) {
    json["facts"] = Json::object();
    for (const auto& [name, value] : structure.facts) json["facts"][name] = value;
  }
  json["weights"] = weights_json(structure, function, statistics);
  for (size_t i = 0; i < structure.models.size(); ++i) {
    const auto& part = structure.models[i];
    Json model{{"name", part.name}, {"type", part.structure.type}};
    models.push_back(i);
    add_structure(model, inspection, part.structure, function_of(part.structure), options, statistics, models);
    models.pop_back();
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
  if (d.update) json["update"] = update_json(*d.update);
  for (const std::string& fault : outline.faults) json["faults"].push_back(fault);
  std::optional<StatisticsReader> statistics;
  if (options.weights) statistics.emplace(inspection);
  std::vector<size_t> models;
  add_structure(json, inspection, outline.structure, function.name, options, statistics ? &*statistics : nullptr,
                models);
  return json;
}

}  // namespace moka::cli
