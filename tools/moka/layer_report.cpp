// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "node_facts.h"
#include "print.h"
#include "text.h"

namespace moka::cli {

std::string function_of(const ModelStructure& structure) {
  for (const auto& f : structure.functions)
    if (f.name == "main") return f.name;
  return structure.functions.empty() ? "" : structure.functions[0].name;
}

namespace {

/// Adds the table of a model, then those of the models inside it.
void add_report(const Inspection& inspection, const ModelStructure& structure, const std::string& function,
                std::vector<size_t>& models, const std::string& title, std::string& out) {
  const std::vector<Node> nodes = nodes_of(structure, function);
  if (!title.empty()) out += (out.empty() ? "" : "\n") + bold(title) + "  " + dim(structure.type) + "\n";
  if (!nodes.empty()) {
    const bool is_network = structure.functions.empty();
    io::Table table({{is_network ? "layer" : "operation", io::Shrink::middle},
                     {"kind", io::Align::left},
                     {"input", io::Shrink::end},
                     {"output", io::Shrink::end},
                     {"weights", io::Align::right},
                     {"bytes", io::Align::right}});
    const NodeReader reader(inspection, structure, function, models);
    int64_t listed = 0, parameters = 0;
    uint64_t bytes = 0;
    std::set<std::string> counted;  // operations can share a weight
    for (const Node& node : nodes) {
      const NodeFacts facts = reader.facts(node);
      std::string kind = node.layer != nullptr ? node.layer->type : node.operation->type;
      // A weight's own operations are part of the operation that uses it.
      if (kind.starts_with("constexpr_")) continue;
      if (node.layer != nullptr && !node.layer->custom_class.empty()) kind += " " + node.layer->custom_class;
      const auto indent = 2 * static_cast<size_t>(std::clamp(node.depth, 0, 16));
      table.add_row({std::string(indent, ' ') + (node.layer != nullptr ? node.layer->name : node.operation->name), kind,
                     fmt::format("{}", fmt::join(facts.inputs, ", ")),
                     fmt::format("{}", fmt::join(facts.outputs, ", ")),
                     facts.weights.empty() ? "" : format_count(facts.parameters),
                     facts.weights.empty() ? "" : format_count(static_cast<int64_t>(facts.bytes))});
      ++listed;
      for (const NodeWeight& weight : facts.weights) {
        if (!is_network && !counted.insert(weight.name).second) continue;
        parameters += weight.parameters;
        bytes += weight.bytes;
      }
    }
    table.add_rule();
    table.add_row({"all", plural(listed, is_network ? "layer" : "operation"), "", "", format_count(parameters),
                   format_count(static_cast<int64_t>(bytes))});
    out += table_text(table);
  }
  for (size_t i = 0; i < structure.models.size(); ++i) {
    const auto& part = structure.models[i];
    models.push_back(i);
    add_report(inspection, part.structure, function_of(part.structure), models, part.name, out);
    models.pop_back();
  }
}

Json report_json(const Inspection& inspection, const ModelStructure& structure, const std::string& function,
                 std::vector<size_t>& models) {
  Json json = Json::object();
  const std::vector<Node> nodes = nodes_of(structure, function);
  if (!nodes.empty()) {
    Json& list = json[structure.functions.empty() ? "layers" : "operations"];
    const NodeReader reader(inspection, structure, function, models);
    for (const Node& node : nodes)
      if (node.layer != nullptr || !node.operation->type.starts_with("constexpr_"))
        list.push_back(node_json(node, reader.facts(node)));
  }
  for (size_t i = 0; i < structure.models.size(); ++i) {
    const auto& part = structure.models[i];
    models.push_back(i);
    Json model{{"name", part.name}, {"type", part.structure.type}};
    model.update(report_json(inspection, part.structure, function_of(part.structure), models));
    json["models"].push_back(std::move(model));
    models.pop_back();
  }
  return json;
}

}  // namespace

std::string layer_report(const Inspection& inspection) {
  const ModelOutline& outline = inspection.outline();
  std::string out;
  std::vector<size_t> models;
  add_report(inspection, outline.structure, outline.description.default_function, models, "", out);
  return out;
}

Json layer_report_json(const Inspection& inspection) {
  const ModelOutline& outline = inspection.outline();
  std::vector<size_t> models;
  return report_json(inspection, outline.structure, outline.description.default_function, models);
}

}  // namespace moka::cli
