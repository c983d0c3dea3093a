#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "command.h"
#include "io/table.h"
#include "json.h"
#include "model_facts.h"
#include "options.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

struct Options {
  LoadOptions load;
  bool mil = false, optimized = false, layers = false, weights = false, json = false;
};

std::string file_name(const std::string& path) {
  std::filesystem::path p(path);
  if (!p.has_filename()) p = p.parent_path();
  return p.filename().string();
}

std::string features_text(std::string_view title, const std::vector<FeatureDescription>& features) {
  if (features.empty()) return {};
  io::Table table({std::string(title), "type", ""}, {io::Align::left, io::Align::left, io::Align::left});
  for (const auto& feature : features) {
    std::string more = feature.description;
    if (feature.optional) more = more.empty() ? "optional" : "optional; " + more;
    for (char& c : more)
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    table.add_row({middle_shortened(feature.name, 48), feature.formatted_type(), dim(shortened(more, 60))});
  }
  return "\n" + table.render(colour_output());
}

/// Two columns for those that don't fit: "conv 32   relu 30   ...", in lines of at most 96 cells.
std::string counts_text(const std::vector<std::pair<std::string, int64_t>>& counts) {
  constexpr size_t kWidth = 96;
  size_t cell = 0;
  for (const auto& [type, count] : counts) cell = std::max(cell, type.size() + format_count(count).size() + 2);
  const size_t columns = std::max<size_t>(1, kWidth / (cell + 3));
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

std::string operations_text(const OperationList& structure) {
  const auto counts = operation_counts(structure);
  int64_t total = 0;
  for (const auto& [type, count] : counts) total += count;
  if (total == 0) return {};
  return fmt::format("\n{}  {}\n", bold(plural(total, "operation")), dim(structure.opset)) + counts_text(counts);
}

std::string weights_text(const OperationList& structure) {
  const auto groups = weight_groups(structure);
  if (groups.empty()) return {};
  io::Table table(
      {"weights", "stored", "arrays", "parameters", "bytes", "share"},
      {io::Align::left, io::Align::left, io::Align::right, io::Align::right, io::Align::right, io::Align::left});
  WeightGroup total;
  for (const auto& group : groups) {
    total.weights += group.weights;
    total.parameters += group.parameters;
    total.bytes += group.bytes;
  }
  for (const auto& group : groups)
    table.add_row({group.element, group.storage, format_count(group.weights), format_count(group.parameters),
                   format_bytes(static_cast<double>(group.bytes)),
                   bar(total.bytes ? static_cast<double>(group.bytes) / static_cast<double>(total.bytes) : 0, 20)});
  if (groups.size() > 1) {
    table.add_rule();
    table.add_row({"all", "", format_count(total.weights), format_count(total.parameters),
                   format_bytes(static_cast<double>(total.bytes))});
  }
  return "\n" + table.render(colour_output());
}

/// The names of values that a person wants to see as operands: what is computed, given or learned.
class Operands {
 public:
  Operands(const OperationList& structure, const FunctionDescription& function) {
    for (const auto& input : function.inputs) named_.insert(input.name);
    for (const auto& state : function.states) named_.insert(state.name);
    for (const auto& operation : structure.operations)
      for (const auto& [value, type] : operation.outputs) named_.insert(value);
    for (const auto& weight : structure.weights) (is_weight(weight) ? named_ : settings_).insert(weight.name);
  }
  std::string text(const OperationList::Operation& operation) const {
    std::string out;
    for (const auto& [parameter, value] : operation.inputs) {
      // What blocks take is in no list: nothing inside one is left out that may be such a value.
      const bool shown = named_.contains(value) ||
                         (operation.depth > 0 && !settings_.contains(value) && value.find('<') == std::string::npos);
      if (shown) out += fmt::format("{}{}={}", out.empty() ? "" : " ", parameter, middle_shortened(value, 32));
    }
    return out;
  }

 private:
  std::set<std::string> named_, settings_;
};

std::string layers_text(const OperationList& structure, const FunctionDescription& function) {
  const Operands operands(structure, function);
  io::Table table({"operation", "type", "operands", "result"},
                  {io::Align::left, io::Align::left, io::Align::left, io::Align::left});
  for (const auto& operation : structure.operations) {
    if (operation.type == "const") continue;
    std::string result;
    for (const auto& [value, type] : operation.outputs) result += (result.empty() ? "" : ", ") + short_type(type);
    const auto indent = 2 * static_cast<size_t>(std::clamp(operation.depth, 0, 16));
    table.add_row({std::string(indent, ' ') + middle_shortened(operation.name, 44), operation.type,
                   shortened(operands.text(operation), 80), shortened(result, 60)});
  }
  return "\n" + table.render(colour_output());
}

std::string weight_list_text(const OperationList& structure) {
  io::Table table({"weight", "type", "bytes", "stored"},
                  {io::Align::left, io::Align::left, io::Align::right, io::Align::left});
  for (const auto& weight : structure.weights)
    if (is_weight(weight))
      table.add_row({middle_shortened(weight.name, 60), short_type(weight.type),
                     format_bytes(static_cast<double>(weight.bytes)), weight.storage});
  return "\n" + table.render(colour_output());
}

std::string labels_text(const ModelDescription& description) {
  std::string out = format_count(static_cast<int64_t>(description.class_labels.size())) + ": ";
  constexpr size_t kMost = 6;
  for (size_t i = 0; i < std::min(kMost, description.class_labels.size()); ++i)
    out += (i ? ", " : "") + shortened(description.class_labels[i], 24);
  return out + (description.class_labels.size() > kMost ? ", …" : "");
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return shortened(text, 100);
}

std::string user_defined_text(const std::map<std::string, std::string>& entries) {
  if (entries.empty()) return {};
  io::Table table({"metadata", ""}, {io::Align::left, io::Align::left});
  for (const auto& [key, value] : entries) table.add_row({middle_shortened(one_line(key), 60), one_line(value)});
  return "\n" + table.render(colour_output());
}

/// What is known of a model; `model` is absent where Moka refuses to run it, and `refusal` says why.
struct Subject {
  ModelDescription description;
  FunctionDescription function;
  std::optional<Model> model;
  std::string refusal;
};

std::string human(const Subject& subject, const Options& options) {
  const ModelDescription& d = subject.description;
  const FunctionDescription& shown = subject.function;
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
    for (const auto& function : d.functions)
      names.push_back(function.name + (function.name == d.default_function ? " (default)" : ""));
    out += fact("functions", fmt::format("{}; shown: {}", fmt::join(names, ", "), shown.name));
  }
  if (!subject.model) out += fact("refused", subject.refusal);
  out += features_text("input", shown.inputs);
  out += features_text("output", shown.outputs);
  out += features_text("state", shown.states);
  out += user_defined_text(d.user_defined);
  if (!subject.model) return out;
  const OperationList structure = subject.model->operations();
  out += operations_text(structure) + weights_text(structure);
  if (options.layers) out += layers_text(structure, shown);
  if (options.weights) out += weight_list_text(structure);
  return out;
}

Json weights_json(const OperationList& structure, bool list) {
  Json json{{"count", 0}, {"bytes", 0}, {"groups", Json::array()}};
  uint64_t bytes = 0;
  int64_t count = 0;
  for (const auto& group : weight_groups(structure)) {
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
  if (!list) return json;
  json["list"] = Json::array();
  for (const auto& weight : structure.weights)
    if (is_weight(weight))
      json["list"].push_back(
          {{"name", weight.name}, {"type", weight.type}, {"bytes", weight.bytes}, {"storage", weight.storage}});
  return json;
}

Json operations_json(const OperationList& structure, bool list) {
  Json json{{"opset", structure.opset}, {"count", 0}, {"byType", Json::object()}};
  int64_t total = 0;
  for (const auto& [type, count] : operation_counts(structure)) {
    json["byType"][type] = count;
    total += count;
  }
  json["count"] = total;
  if (!list) return json;
  json["list"] = Json::array();
  for (const auto& operation : structure.operations) {
    if (operation.type == "const") continue;
    Json inputs = Json::array(), outputs = Json::array();
    for (const auto& [parameter, value] : operation.inputs)
      inputs.push_back({{"parameter", parameter}, {"value", value}});
    for (const auto& [value, type] : operation.outputs) outputs.push_back({{"value", value}, {"type", type}});
    json["list"].push_back({{"name", operation.name},
                            {"type", operation.type},
                            {"depth", operation.depth},
                            {"inputs", std::move(inputs)},
                            {"outputs", std::move(outputs)}});
  }
  return json;
}

Json machine(const Subject& subject, const Options& options) {
  const ModelDescription& d = subject.description;
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
  for (const auto& function : d.functions) json["functions"].push_back(to_json(function));
  json["defaultFunction"] = d.default_function;
  json["function"] = subject.function.name;
  if (!d.class_labels.empty())
    json["classLabels"] = {
        {"type", d.int64_labels ? "Int64" : "String"}, {"count", d.class_labels.size()}, {"labels", d.class_labels}};
  if (!subject.model) {
    json["refused"] = subject.refusal;
    return json;
  }
  const OperationList structure = subject.model->operations();
  json["operations"] = operations_json(structure, options.layers);
  json["weights"] = weights_json(structure, options.weights);
  if (options.mil) json["mil"] = subject.model->mil(options.optimized);
  return json;
}

int inspect(const Options& options) {
  ModelConfiguration c = configuration(options.load);
  c.optimize = options.optimized;
  if (!options.optimized) c.precision = Precision::exact;  // the types that the model declares
  c.device = "reference";                                  // nothing runs here: kernels need not be prepared
  Subject subject;
  try {
    subject.model = load(options.load, c);
    subject.description = subject.model->description();
    subject.function = subject.model->function();
  } catch (const Exception& e) {
    if (e.kind() != ErrorKind::unsupported || options.mil) throw;
    subject.refusal = e.what();
    subject.description = Model::describe(options.load.path);
    for (const FunctionDescription& f : subject.description.functions)
      if (f.name == subject.description.default_function) subject.function = f;
  }
  if (options.json)
    print(rendered(machine(subject, options)));
  else if (options.mil)
    print(subject.model->mil(options.optimized));
  else
    print(human(subject, options));
  return 0;
}

}  // namespace

Command add_inspect(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app =
      parent.add_subcommand("inspect", "What a model is: inputs, outputs, metadata, operations and weights");
  add_model(*app, options->load);
  auto* mil = app->add_flag("--mil", options->mil, "The program as MIL text");
  app->add_flag("--optimized", options->optimized, "With --mil: after Moka's passes")->needs(mil)->option_text(" ");
  app->add_flag("--layers", options->layers, "Every operation with its shapes");
  app->add_flag("--weights", options->weights, "Every weight with its type and size");
  app->add_flag("--json", options->json, "Answer in JSON");
  app->footer("Example: moka inspect Classifier.mlpackage --layers");
  return {app, "moka inspect Classifier.mlpackage --layers", [options] { return inspect(*options); }};
}

}  // namespace moka::cli
