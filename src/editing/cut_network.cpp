// SPDX-License-Identifier: Apache-2.0
#include "editing/cut_network.h"

#include <algorithm>
#include <map>
#include <set>

#include "editing/features.h"
#include "editing/infer.h"
#include "editing/network.h"

namespace moka::editing {
namespace {

using LayerSizes = std::map<std::string, std::vector<int64_t>>;

/// Whether the feature is the array or image that a layer computes, unlike the label of a classifier.
Result<bool> is_array_or_image(const Message& feature) {
  const std::string kind = MOKA_TRY(MOKA_TRY(child_or_empty(feature, "type")).which("Type"));
  return kind == "multiArrayType" || kind == "imageType";
}

bool has(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Values by the names that the user gave.
Result<std::vector<std::string>> resolved(const std::vector<std::string>& names, const std::vector<Message>& layers,
                                          const std::set<std::string>& inputs) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    std::vector<std::string> found;
    if (inputs.contains(name)) found = {name};
    for (const Message& layer : layers) {
      const std::vector<std::string> given = MOKA_TRY(texts_of(layer, "output"));
      if (has(given, name)) found = {name};
    }
    for (const Message& layer : layers)
      if (found.empty() && MOKA_TRY(has_text(layer, "name", name))) found = MOKA_TRY(texts_of(layer, "output"));
    if (found.empty()) return fail(ErrorCode::not_found, "the network has no value or layer '", name, "'");
    for (std::string& value : found)
      if (!has(out, value)) out.push_back(std::move(value));
  }
  return out;
}

/// Makes a plain network of a classifier or a regressor.
Status make_plain(Message model, std::string& kind) {
  if (kind == "neuralNetwork") return {};
  Message content = MOKA_TRY(model.child(kind));
  if (kind == "neuralNetworkClassifier")
    for (const char* field : {"stringClassLabels", "int64ClassLabels", "labelProbabilityLayerName"})
      MOKA_TRY(content.clear(field));
  MOKA_TRY(convert_network(model, kind, "neuralNetwork"));
  kind = "neuralNetwork";
  Message description = MOKA_TRY(model.edit("description"));
  MOKA_TRY(description.clear("predictedFeatureName"));
  return description.clear("predictedProbabilitiesName");
}

/// The value with the probabilities of a classifier, which its outputs stand for.
Result<std::string> probabilities_of(const Message& content, const std::vector<Message>& layers) {
  std::string name = MOKA_TRY(text_of(content, "labelProbabilityLayerName"));
  if (name.empty() && !layers.empty())
    for (const std::string& output : MOKA_TRY(texts_of(layers.back(), "output"))) name = output;
  return name;
}

/// What is known about a network that is cut.
struct Network {
  std::vector<std::pair<std::string, Message>> inputs;
  std::map<std::string, Message> outputs;
  std::set<std::string> input_names;
  Result<LayerSizes> sizes;
  bool exact = false;  ///< arrays have the shapes that are described

  /// The described size of a value.
  Result<std::vector<int64_t>> size_of(const std::string& name) const {
    if (!sizes.ok()) return fail(ErrorCode::unsupported, "the size of '", name, "': ", sizes.error().to_string());
    const auto it = sizes.value().find(name);
    if (it == sizes.value().end()) return fail(ErrorCode::unsupported, "the size of '", name, "' is not known");
    return described_size(it->second, exact);
  }
};

Status add_features(const Interface& interface, Network& network) {
  for (const Feature& f : MOKA_TRY(features(interface))) {
    if (!f.is_input) {
      network.outputs.emplace(f.name, f.message);
    } else if (network.input_names.insert(f.name).second) {
      network.inputs.emplace_back(f.name, f.message);
    }
  }
  return {};
}

/// The layers that compute values of `needed` from those of `provided`. Adds what they read to `needed`.
Result<std::vector<Message>> needed_layers(const std::vector<Message>& layers, const std::vector<std::string>& provided,
                                           std::set<std::string>& needed) {
  std::vector<Message> kept;
  for (size_t i = layers.size(); i-- > 0;) {
    bool used = false;
    for (const std::string& name : MOKA_TRY(texts_of(layers[i], "output")))
      used |= needed.contains(name) && !has(provided, name);
    if (!used) continue;
    needed.merge(MOKA_TRY(reads_of(layers[i])));
    kept.push_back(layers[i]);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

/// The descriptions of the inputs that are needed. `provided`: those that the user lists; `all`: lists none.
Result<std::vector<Message>> described_inputs(const Network& network, const std::vector<std::string>& provided,
                                              const std::set<std::string>& needed, bool all) {
  std::vector<Message> out;
  for (const auto& [name, message] : network.inputs) {
    if (!needed.contains(name)) continue;
    if (!all && !has(provided, name))
      return fail(ErrorCode::invalid_argument, "the outputs also depend on the input '", name,
                  "'; list it among the inputs, or further values that replace it");
    out.push_back(message);
  }
  for (const std::string& name : provided) {
    if (!needed.contains(name))
      return fail(ErrorCode::invalid_argument, "input '", name, "': nothing between it and the outputs reads it");
    if (!network.input_names.contains(name))
      out.push_back(MOKA_TRY(array_feature(name, "FLOAT32", MOKA_TRY(network.size_of(name)))));
  }
  if (out.empty()) return fail(ErrorCode::invalid_argument, "the model that is cut out would have no input");
  return out;
}

/// The descriptions of the outputs that the user lists.
Result<std::vector<Message>> described_outputs(const Network& network, const std::vector<std::string>& wanted) {
  std::vector<Message> out;
  for (const std::string& name : wanted) {
    auto old = network.outputs.find(name);
    if (old != network.outputs.end() && !MOKA_TRY(is_array_or_image(old->second))) old = network.outputs.end();
    const Result<std::vector<int64_t>> size = network.size_of(name);
    out.push_back(old != network.outputs.end()
                      ? old->second
                      : MOKA_TRY(array_feature(name, "FLOAT32", size.ok() ? size.value() : std::vector<int64_t>())));
  }
  return out;
}

/// Removes the preprocessing of inputs that are gone, and all that is for training.
Status clear_unused(Message model, Message network, const std::vector<Message>& layers,
                    const std::set<std::string>& needed) {
  std::vector<Message> preprocessing;
  for (const Message& one : MOKA_TRY(network.children("preprocessing"))) {
    const std::string name = MOKA_TRY(text_of(one, "featureName"));
    if (name.empty() || needed.contains(name)) preprocessing.push_back(one);
  }
  MOKA_TRY(network.set_all("preprocessing", preprocessing));
  MOKA_TRY(network.clear("updateParams"));
  MOKA_TRY(model.clear("isUpdatable"));
  for (Message layer : layers) MOKA_TRY(layer.clear("isUpdatable"));
  Message description = MOKA_TRY(model.edit("description"));
  return description.clear("trainingInput");
}

}  // namespace

Status cut_network(format::ModelSource& source, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) {
  Message model = source.specification;
  std::string kind = MOKA_TRY(kind_of(model));
  Interface interface = MOKA_TRY(interfaces(model)).at(0);
  Network known{{}, {}, {}, network_sizes(source)};
  MOKA_TRY(add_features(interface, known));
  if (!outputs.empty()) MOKA_TRY(make_plain(model, kind));
  Message network = MOKA_TRY(model.child(kind));
  const std::vector<Message> layers = MOKA_TRY(network.children("layers"));
  known.exact = MOKA_TRY(has_text(network, "arrayInputShapeMapping", "EXACT_ARRAY_MAPPING"));

  const std::vector<std::string> provided = MOKA_TRY(resolved(inputs, layers, known.input_names));
  const std::vector<std::string> wanted = MOKA_TRY(resolved(outputs, layers, known.input_names));
  for (const std::string& name : wanted)
    if (known.input_names.contains(name) || has(provided, name))
      return fail(ErrorCode::invalid_argument, "output '", name, "': it is an input of the model that is cut out");
  std::set<std::string> needed(wanted.begin(), wanted.end());
  if (outputs.empty()) {
    for (const auto& [name, message] : known.outputs) needed.insert(name);
    if (kind == "neuralNetworkClassifier") needed.insert(MOKA_TRY(probabilities_of(network, layers)));
  }
  const std::vector<Message> kept = MOKA_TRY(needed_layers(layers, provided, needed));
  MOKA_TRY(network.set_all("layers", kept));
  MOKA_TRY(interface.message.set_all("input", MOKA_TRY(described_inputs(known, provided, needed, inputs.empty()))));
  if (!outputs.empty()) MOKA_TRY(interface.message.set_all("output", MOKA_TRY(described_outputs(known, wanted))));
  return clear_unused(model, network, kept, needed);
}

}  // namespace moka::editing
