// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect.h"
#include "io/table.h"
#include "model_facts.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

using io::Align;
using io::Shrink;

std::string value_text(const std::variant<int64_t, double, bool>& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* number = std::get_if<double>(&value)) return format_number(*number);
  return fmt::format("{}", std::get<int64_t>(value));
}

std::string allowed_text(const UpdateParameter& p) {
  if (p.range) return fmt::format("{} to {}", format_number(p.range->first), format_number(p.range->second));
  if (p.bounds) return fmt::format("{} to {}", p.bounds->first, p.bounds->second);
  constexpr size_t kMost = 12;
  const std::vector<int64_t> few(p.allowed.begin(),
                                 p.allowed.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, p.allowed.size())));
  return fmt::format("{}{}", fmt::join(few, ", "), p.allowed.size() > kMost ? ", …" : "");
}

/// What a training input is for.
std::string role_of(const FeatureDescription& feature, const UpdateDescription& update) {
  for (const LossLayer& loss : update.losses)
    if (loss.training_input == feature.name) return fmt::format("target of {}", loss.name);
  return {};
}

std::string neighbors_text(const NearestNeighbors& n) {
  std::string index = n.index;
  if (n.leaf_size > 0) index += fmt::format(", leaves of {}", n.leaf_size);
  std::string out = fmt::format("{} of {}; index {}, weighting {}", plural(n.samples, "sample"),
                                plural(n.dimensions, "dimension"), index, n.weighting);
  if (n.default_label) out += fmt::format("; default label '{}'", *n.default_label);
  return out;
}

Json value_json(const std::variant<int64_t, double, bool>& value) {
  if (const auto* number = std::get_if<double>(&value)) return finite_or_null(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return std::get<int64_t>(value);
}

Json parameter_json(const UpdateParameter& p) {
  Json json{{"default", value_json(p.value)}};
  if (p.range) json["range"] = {finite_or_null(p.range->first), finite_or_null(p.range->second)};
  if (p.bounds) json["range"] = {p.bounds->first, p.bounds->second};
  if (!p.allowed.empty()) json["allowed"] = p.allowed;
  return json;
}

}  // namespace

std::string update_text(const ModelDescription& description) {
  if (!description.update) return {};
  const UpdateDescription& update = *description.update;
  std::string out;
  io::Table inputs({{"training input", Shrink::middle}, {"type", Shrink::wrap}, {"", Shrink::wrap, io::Color::dim}});
  for (const FeatureDescription& f : update.training_inputs)
    inputs.add_row({f.name, folded_type(f), role_of(f, update)});
  if (!inputs.empty()) out += "\n" + table_text(inputs);
  io::Table layers(
      {{"updated by training", Shrink::middle}, {"type", Shrink::end}, {"weights or values", Shrink::wrap}});
  for (const UpdatableLayer& layer : update.layers)
    layers.add_row({layer.name, layer.type, fmt::format("{}", fmt::join(layer.parameters, " "))});
  for (const LossLayer& loss : update.losses)
    layers.add_row({loss.name, fmt::format("loss: {}", to_string(loss.kind)),
                    fmt::format("{} against {}", loss.input, loss.target)});
  if (update.neighbors) layers.add_row({"samples", "nearest neighbors", neighbors_text(*update.neighbors)});
  if (!layers.empty()) out += "\n" + table_text(layers);
  io::Table parameters({{"training parameter", Shrink::middle}, {"default", Align::right}, {"allowed", Shrink::wrap}});
  if (!update.optimizer.empty()) parameters.add_row({"optimizer", update.optimizer, ""});
  for (const UpdateParameter& p : update.parameters) parameters.add_row({p.name, value_text(p.value), allowed_text(p)});
  if (!parameters.empty()) out += "\n" + table_text(parameters);
  return out;
}

Json update_json(const UpdateDescription& update) {
  Json json = Json::object();
  json["trainingInputs"] = Json::array();
  for (const FeatureDescription& f : update.training_inputs) json["trainingInputs"].push_back(to_json(f));
  json["layers"] = Json::array();
  for (const UpdatableLayer& layer : update.layers)
    json["layers"].push_back({{"name", layer.name}, {"type", layer.type}, {"parameters", layer.parameters}});
  json["losses"] = Json::array();
  for (const LossLayer& loss : update.losses)
    json["losses"].push_back({{"name", loss.name},
                              {"type", to_string(loss.kind)},
                              {"input", loss.input},
                              {"target", loss.target},
                              {"trainingInput", loss.training_input}});
  if (!update.optimizer.empty()) json["optimizer"] = update.optimizer;
  json["parameters"] = Json::object();
  for (const UpdateParameter& p : update.parameters) json["parameters"][p.name] = parameter_json(p);
  if (const auto& n = update.neighbors) {
    json["nearestNeighbors"] = {{"dimensions", n->dimensions}, {"samples", n->samples}, {"index", n->index}};
    if (n->leaf_size > 0) json["nearestNeighbors"]["leafSize"] = n->leaf_size;
    json["nearestNeighbors"]["weighting"] = n->weighting;
    json["nearestNeighbors"]["labels"] = n->string_labels ? "String" : "Int64";
    if (n->default_label) json["nearestNeighbors"]["defaultLabel"] = *n->default_label;
  }
  if (!update.stage.empty()) json["stage"] = update.stage;
  if (!update.fault.empty()) json["fault"] = update.fault;
  if (!update.remarks.empty()) json["remarks"] = update.remarks;
  return json;
}

}  // namespace moka::cli
