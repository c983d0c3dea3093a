// SPDX-License-Identifier: Apache-2.0
#include "editing/features.h"

#include <algorithm>

namespace moka::editing {

Result<std::vector<Interface>> interfaces(const Message& model) {
  Message copy = model;
  const Message description = MOKA_TRY(copy.edit("description"));
  std::vector<Interface> out;
  for (const Message& function : MOKA_TRY(description.children("functions")))
    out.push_back({MOKA_TRY(text_of(function, "name")), function});
  if (out.empty()) out.push_back({"main", description});
  return out;
}

Result<std::vector<Feature>> features(const Interface& interface) {
  std::vector<Feature> out;
  for (const char* field : {"input", "state", "output"})
    for (const Message& message : MOKA_TRY(interface.message.children(field))) {
      const bool is_state = field == std::string_view("state");
      out.push_back({MOKA_TRY(text_of(message, "name")), field != std::string_view("output"), is_state, message});
    }
  return out;
}

Result<std::vector<Feature>> find_features(const Message& model, std::string_view name, Side side) {
  std::vector<Feature> found;
  std::string known;
  for (const Interface& interface : MOKA_TRY(interfaces(model)))
    for (const Feature& feature : MOKA_TRY(features(interface))) {
      if (!is_on(feature, side)) continue;
      if (feature.name == name) found.push_back(feature);
      known += cat(known.empty() ? "" : ", ", feature.name);
    }
  if (!found.empty()) return found;
  const char* what = side == Side::inputs ? "input" : side == Side::outputs ? "output" : "input or output";
  return fail(ErrorCode::not_found, "the model has no ", what, " '", name, "'; it has: ", known);
}

Result<std::string> kind_of(const Message& model) { return model.which("Type"); }

bool is_pipeline(std::string_view kind) { return kind.starts_with("pipeline"); }
bool is_network(std::string_view kind) { return kind.starts_with("neuralNetwork"); }

std::string name_of_kind(std::string_view kind) {
  if (kind == "mlProgram") return "an ML program";
  if (is_network(kind)) return "a neural network";
  if (is_pipeline(kind)) return "a pipeline";
  return kind.empty() ? std::string("a model without content") : cat("a model of type ", kind);
}

std::string name_of_type(std::string_view type) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"int64Type", "an integer"},    {"doubleType", "a number"},     {"stringType", "a text"},
      {"imageType", "an image"},      {"multiArrayType", "an array"}, {"dictionaryType", "a dictionary"},
      {"sequenceType", "a sequence"}, {"stateType", "a state"}};
  for (const auto& [name, words] : kWords)
    if (type == name) return std::string(words);
  return type.empty() ? "a feature without a type" : cat("a feature of type ", type);
}

Result<Message> array_feature(const std::string& name, const std::string& element, const std::vector<int64_t>& shape) {
  Message out = MOKA_TRY(Message::make("FeatureDescription"));
  MOKA_TRY(set_text(out, "name", name));
  Message type = MOKA_TRY(out.edit("type"));
  const Message array = MOKA_TRY(type.edit("multiArrayType"));
  MOKA_TRY(set_text(array, "dataType", element));
  MOKA_TRY(set_integers(array, "shape", shape));
  return out;
}

Status need_version(Message model, int64_t version) {
  if (MOKA_TRY(integer_of(model, "specificationVersion")) >= version) return {};
  return set_integer(model, "specificationVersion", version);
}

}  // namespace moka::editing
