// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "base/sha256.h"
#include "editing/network.h"
#include "editing/pipeline.h"
#include "linting/repair.h"

namespace moka::linting {
namespace {

using editing::Message;

struct Network {
  Message content;
  std::set<std::string> inputs;
  std::set<std::string> outputs;  ///< values that must stay
};

Status add_networks(const Message& model, std::vector<Network>& out) {
  const std::string kind = MOKA_TRY(editing::kind_of(model));
  if (editing::is_pipeline(kind)) {
    for (const editing::Stage& stage : MOKA_TRY(editing::stages_of(model))) MOKA_TRY(add_networks(stage.model, out));
    return {};
  }
  if (!editing::is_network(kind) || MOKA_TRY(editing::integer_of(model, "isUpdatable")) != 0) return {};
  Network network{MOKA_TRY(model.child(kind)), {}, {}};
  for (const editing::Interface& interface : MOKA_TRY(editing::interfaces(model)))
    for (const editing::Feature& feature : MOKA_TRY(editing::features(interface)))
      (feature.is_input ? network.inputs : network.outputs).insert(feature.name);
  // A classifier has its probabilities there unless it names another value.
  if (const std::vector<Message> layers = MOKA_TRY(network.content.children("layers")); !layers.empty())
    for (std::string& name : MOKA_TRY(editing::texts_of(layers.back(), "output")))
      network.outputs.insert(std::move(name));
  if (kind == "neuralNetworkClassifier")
    network.outputs.insert(MOKA_TRY(editing::text_of(network.content, "labelProbabilityLayerName")));
  out.push_back(std::move(network));
  return {};
}

Result<std::vector<Network>> networks_of(const format::ModelSource& source) {
  std::vector<Network> out;
  MOKA_TRY(add_networks(source.specification, out));
  return out;
}

bool has_blocks(const std::string& type) { return type == "loop" || type == "branch"; }

/// Layers that are neither dropped nor merged: they may have effects, or differ each time they run.
bool is_opaque(const std::string& type) {
  return has_blocks(type) || type.empty() || type == "custom" || type.starts_with("random") ||
         type == "categoricalDistribution";
}

Result<size_t> drop_unused(Network& network) {
  const std::vector<Message> layers = MOKA_TRY(network.content.children("layers"));
  std::set<std::string> needed = network.outputs;
  std::vector<Message> kept;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    bool used = is_opaque(MOKA_TRY(layer->which("layer")));
    for (const std::string& name : MOKA_TRY(editing::texts_of(*layer, "output"))) used |= needed.contains(name);
    if (!used) continue;
    needed.merge(MOKA_TRY(editing::reads_of(*layer)));
    kept.push_back(*layer);
  }
  const size_t dropped = layers.size() - kept.size();
  std::reverse(kept.begin(), kept.end());
  if (dropped > 0) MOKA_TRY(network.content.set_all("layers", kept));
  return dropped;
}

/// Equal for layers that compute the same.
Result<std::string> key_of(const Message& layer) {
  Message same = layer.copy();
  MOKA_TRY(same.clear("name"));
  const size_t outputs = MOKA_TRY(same.count("output"));
  MOKA_TRY(same.clear("output"));
  const Bytes bytes = MOKA_TRY(same.serialize()).joined();
  return cat(outputs, " ", base64(sha256(bytes.span)));
}

Result<size_t> merge(Network& network) {
  std::vector<Message> layers = MOKA_TRY(network.content.children("layers"));
  std::set<std::string> varying, written = network.inputs;
  for (const Message& layer : layers) {
    // A blob that is written twice, or in a loop, changes its value.
    for (std::string& name : MOKA_TRY(editing::texts_of(layer, "output")))
      if (!written.insert(name).second) varying.insert(std::move(name));
    if (has_blocks(MOKA_TRY(layer.which("layer")))) varying.merge(MOKA_TRY(editing::blobs_of(layer)));
  }
  std::map<std::string, std::vector<std::string>> known;  // outputs of the first one
  std::map<std::string, std::string> replaced;
  std::vector<Message> kept;
  for (Message& layer : layers) {
    std::vector<std::string> inputs = MOKA_TRY(editing::texts_of(layer, "input"));
    bool may_merge = !is_opaque(MOKA_TRY(layer.which("layer")));
    for (std::string& name : inputs) {
      if (const auto other = replaced.find(name); other != replaced.end()) name = other->second;
      may_merge &= !varying.contains(name);
    }
    MOKA_TRY(editing::set_texts(layer, "input", inputs));
    const std::vector<std::string> outputs = MOKA_TRY(editing::texts_of(layer, "output"));
    bool is_output = outputs.empty();
    for (const std::string& name : outputs) {
      may_merge &= !varying.contains(name);
      is_output |= network.outputs.contains(name);
    }
    if (may_merge) {
      const auto [first, is_new] = known.try_emplace(MOKA_TRY(key_of(layer)), outputs);
      if (!is_new && !is_output) {
        for (size_t i = 0; i < outputs.size(); ++i) replaced[outputs[i]] = first->second[i];
        continue;
      }
    }
    kept.push_back(layer);
  }
  const size_t merged = layers.size() - kept.size();
  if (merged > 0) MOKA_TRY(network.content.set_all("layers", kept));
  return merged;
}

}  // namespace

Result<size_t> drop_unused_layers(format::ModelSource& source) {
  size_t dropped = 0;
  for (Network& network : MOKA_TRY(networks_of(source))) dropped += MOKA_TRY(drop_unused(network));
  return dropped;
}

Result<size_t> merge_layers(format::ModelSource& source) {
  size_t merged = 0;
  for (Network& network : MOKA_TRY(networks_of(source))) merged += MOKA_TRY(merge(network));
  return merged;
}

}  // namespace moka::linting
