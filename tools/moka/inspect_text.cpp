// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "inspect.h"
#include "model_facts.h"
#include "node_facts.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

using io::Align;
using io::Color;
using io::Shrink;

std::string file_name(const std::string& path) {
  std::filesystem::path p(path);
  if (!p.has_filename()) p = p.parent_path();
  return p.filename().string();
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

std::string features_text(std::string_view title, const std::vector<FeatureDescription>& features) {
  if (features.empty()) return {};
  io::Table table({{std::string(title), Shrink::middle}, {"type", Shrink::wrap}, {"", Shrink::wrap, Color::dim}});
  for (const auto& feature : features) {
    std::string more = one_line(feature.description);
    std::string optional = "optional";
    if (feature.default_value) optional += ", by default " + format_number(*feature.default_value);
    if (feature.optional) more = more.empty() ? optional : optional + "; " + more;
    table.add_row({feature.name, folded_type(feature), more});
  }
  return "\n" + table_text(table);
}

/// Columns that fit in the line: "conv 32   relu 30   ...".
std::string counts_text(const std::vector<std::pair<std::string, int64_t>>& counts) {
  const size_t width = std::min<size_t>(line_width(), 96);
  size_t cell = 0;
  for (const auto& [type, count] : counts) cell = std::max(cell, type.size() + format_count(count).size() + 2);
  const size_t columns = std::max<size_t>(1, width / (cell + 3));
  const size_t rows = (counts.size() + columns - 1) / columns;
  std::string out;
  for (size_t r = 0; r < rows; ++r) {
    std::string line;
    for (size_t c = r; c < counts.size(); c += rows) {
      const std::string count = format_count(counts[c].second);
      line += fmt::format("  {}{:>{}} ", counts[c].first, count, cell - counts[c].first.size());
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string opset_of(const ModelStructure& structure, const std::string& function) {
  for (const auto& f : structure.functions)
    if (f.name == function) return f.opset;
  return {};
}

std::string nodes_text(const ModelStructure& structure, const std::string& function) {
  const std::vector<Node> nodes = nodes_of(structure, function);
  if (nodes.empty()) return {};
  const char* word = structure.layers.empty() ? "operation" : "layer";
  const std::string opset = opset_of(structure, function);
  return fmt::format("\n{}{}\n", bold(plural(static_cast<int64_t>(nodes.size()), word)),
                     opset.empty() ? "" : "  " + dim(opset)) +
         counts_text(type_counts(nodes));
}

/// The names of values worth showing as operands: computed values, inputs and weights.
class Operands {
 public:
  Operands(const ModelStructure& structure, const std::string& function) {
    for (const auto& f : structure.functions) {
      if (f.name != function) continue;
      for (const auto& [value, type] : f.body.inputs) named_.insert(value);
      add(f.body);
    }
    for (const auto* weight : weights_of(structure, function)) named_.insert(weight->name);
  }
  std::string text(const Node& node) const {
    if (node.layer != nullptr) return fmt::format("{}", fmt::join(node.layer->inputs, " "));
    std::string out;
    for (const auto& [parameter, values] : node.operation->inputs)
      for (const std::string& value : values)
        if (named_.contains(value)) out += fmt::format("{}{}={}", out.empty() ? "" : " ", parameter, value);
    return out;
  }

 private:
  void add(const ModelStructure::Block& block) {
    for (const auto& operation : block.operations) {
      if (operation.type != "const")
        for (const auto& [value, type] : operation.outputs) named_.insert(value);
      for (const auto& inner : operation.blocks) {
        for (const auto& [value, type] : inner.inputs) named_.insert(value);
        add(inner);
      }
    }
  }
  std::set<std::string> named_;
};

/// The results with their sizes.
std::string result_of(const Node& node, const NodeFacts& facts) {
  std::string out;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    out += out.empty() ? "" : ", ";
    if (node.layer != nullptr) out += node.layer->outputs[i] + " ";
    out += facts.outputs[i];
  }
  return out;
}

std::string layers_text(const Inspection& inspection, const ModelStructure& structure, const std::string& function,
                        const std::vector<size_t>& models) {
  const std::vector<Node> nodes = nodes_of(structure, function);
  if (nodes.empty()) return {};
  const Operands operands(structure, function);
  const NodeReader reader(inspection, structure, function, models);
  io::Table table({{structure.layers.empty() ? "operation" : "layer", Shrink::middle},
                   {"type", Shrink::end},
                   {"operands", Shrink::end},
                   {"result", Shrink::end},
                   {"window", Shrink::end},
                   {"weights", Shrink::end}});
  for (const Node& node : nodes) {
    const auto indent = 2 * static_cast<size_t>(std::clamp(node.depth, 0, 16));
    const std::string& name = node.layer != nullptr ? node.layer->name : node.operation->name;
    std::string type = node.layer != nullptr ? node.layer->type : node.operation->type;
    if (node.layer != nullptr && !node.layer->custom_class.empty()) type += " " + node.layer->custom_class;
    const NodeFacts facts = reader.facts(node);
    table.add_row({std::string(indent, ' ') + name, type, operands.text(node), result_of(node, facts),
                   window_text(node.layer != nullptr ? node.layer->window : node.operation->window),
                   weights_text(facts)});
  }
  return "\n" + table_text(table);
}

std::string facts_text(const ModelStructure& structure) {
  std::string out;
  for (const auto& [name, value] : structure.facts) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, value);
  return out;
}

/// A short summary of one model of a pipeline.
std::string stage_text(const ModelStructure& stage) {
  const std::vector<Node> nodes = nodes_of(stage, function_of(stage));
  if (nodes.empty()) return facts_text(stage);
  uint64_t bytes = 0;
  for (const auto& group : weight_groups(stage, function_of(stage))) bytes += group.bytes;
  std::string out = plural(static_cast<int64_t>(nodes.size()), stage.layers.empty() ? "operation" : "layer");
  if (bytes > 0) out += fmt::format(", {} of weights", format_bytes(static_cast<double>(bytes)));
  return out;
}

void add_stages(const ModelStructure& structure, int depth, io::Table& table) {
  for (const auto& part : structure.models) {
    const auto indent = 2 * static_cast<size_t>(std::clamp(depth, 0, 16));
    table.add_row({std::string(indent, ' ') + part.name, part.structure.type, stage_text(part.structure)});
    add_stages(part.structure, depth + 1, table);
  }
}

/// If `statistics` is null, lists no weights.
std::string stages_text(const Inspection& inspection, const ModelStructure& structure, const InspectOptions& options,
                        const StatisticsReader* statistics) {
  if (structure.models.empty()) return {};
  io::Table table({{"model", Shrink::middle}, {"type", Align::left}, {"holds", Shrink::wrap}});
  add_stages(structure, 0, table);
  std::string out = "\n" + table_text(table);
  for (size_t i = 0; i < structure.models.size(); ++i) {
    const auto& part = structure.models[i];
    const std::string function = function_of(part.structure);
    if (options.layers) out += layers_text(inspection, part.structure, function, {i});
    if (statistics) out += weight_list_text(part.structure, function, *statistics);
  }
  return out;
}

std::string labels_text(const ModelDescription& description) {
  std::string out = format_count(static_cast<int64_t>(description.class_labels.size())) + ": ";
  constexpr size_t kMost = 6;
  for (size_t i = 0; i < std::min(kMost, description.class_labels.size()); ++i)
    out += (i ? ", " : "") + one_line(description.class_labels[i]);
  return out + (description.class_labels.size() > kMost ? ", …" : "");
}

std::string user_defined_text(const std::map<std::string, std::string>& entries) {
  if (entries.empty()) return {};
  constexpr size_t kLongest = 400;  // limit, because some models carry whole files
  io::Table table({{"metadata", Shrink::middle}, {"", Shrink::wrap}});
  for (const auto& [key, value] : entries) table.add_row({one_line(key), shortened(one_line(value), kLongest)});
  return "\n" + table_text(table);
}

void collect_faults(const ModelStructure& structure, const std::string& where, std::vector<std::string>& out) {
  for (const std::string& fault : structure.faults) out.push_back(where + fault);
  for (const auto& part : structure.models) collect_faults(part.structure, where + part.name + ": ", out);
}

std::string faults_text(const ModelOutline& outline) {
  std::vector<std::string> faults = outline.faults;
  if (const auto& update = outline.description.update; update && !update->fault.empty())
    faults.push_back("update: " + update->fault);
  collect_faults(outline.structure, "", faults);
  if (faults.empty()) return {};
  constexpr size_t kMost = 10;
  std::string out = "\n" + bold("faults") + "\n";
  for (size_t i = 0; i < std::min(kMost, faults.size()); ++i) out += paragraph(faults[i], 2);
  if (faults.size() > kMost) out += dim(fmt::format("  and {} more; --json lists all", faults.size() - kMost)) + "\n";
  return out;
}

}  // namespace

std::string inspect_text(const Inspection& inspection, const FunctionDescription& function,
                         const InspectOptions& options) {
  const ModelOutline& outline = inspection.outline();
  const ModelDescription& d = outline.description;
  std::string out = bold(file_name(options.load.path)) + "\n";
  out += fact("type", d.type + (d.updatable ? ", updatable" : ""));
  out += fact("size", format_bytes(static_cast<double>(size_on_disk(options.load.path))));
  const std::string systems = systems_for(d.specification_version);
  out +=
      fact("spec", fmt::format("{}{}", d.specification_version, systems.empty() ? "" : " (" + systems + " or later)"));
  if (!d.class_labels.empty()) out += fact("classes", labels_text(d));
  if (!d.short_description.empty()) out += fact("description", one_line(d.short_description));
  if (!d.author.empty()) out += fact("author", one_line(d.author));
  if (!d.license.empty()) out += fact("license", one_line(d.license));
  if (!d.version.empty()) out += fact("version", one_line(d.version));
  if (d.functions.size() > 1) {
    std::vector<std::string> names;
    for (const auto& f : d.functions) names.push_back(f.name + (f.name == d.default_function ? " (default)" : ""));
    out += fact("functions", fmt::format("{}; shown: {}", fmt::join(names, ", "), function.name));
  }
  const ModelStructure& structure = outline.structure;
  if (!structure.facts.empty()) out += fact("holds", facts_text(structure));
  out += features_text("input", function.inputs);
  out += features_text("output", function.outputs);
  out += features_text("state", function.states);
  out += update_text(d);
  out += user_defined_text(d.user_defined);
  std::optional<StatisticsReader> statistics;
  if (options.weights) statistics.emplace(inspection);
  out += preprocessing_text(structure);
  out += stages_text(inspection, structure, options, statistics ? &*statistics : nullptr);
  out += nodes_text(structure, function.name) + weights_text(structure, function.name);
  if (options.layers) out += layers_text(inspection, structure, function.name, {});
  if (statistics) out += weight_list_text(structure, function.name, *statistics);
  return out + faults_text(outline);
}

}  // namespace moka::cli
