// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "format/mlmodelc/layer_names.h"
#include "import/update/parts.h"

namespace moka::import::update {

namespace {

using Layer = proto::NeuralNetworkLayer;
using Layers = google::protobuf::RepeatedPtrField<Layer>;

std::string in_words(const Layer& layer) { return cat("layer '", layer.name(), "' (", layer_type(layer), ")"); }

/// Who passes a gradient through a layer, or updates it.
enum class Support { none, moka, core_ml };

Support gradients_of(const Layer& layer) {
  switch (layer.layer_case()) {
    case Layer::kConvolution:
    case Layer::kInnerProduct:
    case Layer::kUniDirectionalLSTM:
    case Layer::kFlatten:
    case Layer::kPooling:
    case Layer::kBatchnorm: return Support::core_ml;
    case Layer::kActivation:
      return layer.activation().has_relu() || layer.activation().has_sigmoid() || layer.activation().has_tanh()
                 ? Support::core_ml
                 : Support::none;
    case Layer::kBatchedMatmul: return Support::moka;
    default: return Support::none;
  }
}

Support updates_of(const Layer& layer) {
  switch (layer.layer_case()) {
    case Layer::kConvolution:
    case Layer::kInnerProduct:
    case Layer::kUniDirectionalLSTM: return Support::core_ml;
    case Layer::kBatchedMatmul: return layer.batchedmatmul().weights().isupdatable() ? Support::moka : Support::none;
    default: return Support::none;
  }
}

template <class Params>
Status check_weights(const Layer& layer, const Params& params) {
  const bool bias = params.hasbias();
  if (params.weights().has_quantization() || (bias && params.bias().has_quantization()))
    return fail(ErrorCode::malformed, in_words(layer), ": it is updatable, but its ",
                params.weights().has_quantization() ? "weights are" : "bias is",
                " quantized, and only floats can be updated");
  const char* missing = !params.weights().isupdatable() ? "weights are" : "bias is";
  if (!params.weights().isupdatable() || (bias && !params.bias().isupdatable()))
    return fail(ErrorCode::malformed, in_words(layer), ": it is updatable, but its ", missing,
                " not marked as updatable");
  return {};
}

Status check_layers(const Layers& layers, std::vector<std::string>& remarks) {
  bool any = false;
  for (const Layer& layer : layers) {
    if (!layer.isupdatable()) continue;
    any = true;
    const Support support = updates_of(layer);
    if (support == Support::none)
      return fail(ErrorCode::malformed, in_words(layer),
                  ": it is marked as updatable, but only convolution, innerProduct and uniDirectionalLSTM can be");
    if (support == Support::moka) remarks.push_back(cat("Core ML does not update ", in_words(layer)));
    if (layer.has_convolution()) MOKA_TRY(check_weights(layer, layer.convolution()));
    if (layer.has_innerproduct()) MOKA_TRY(check_weights(layer, layer.innerproduct()));
    if (layer.has_batchedmatmul()) MOKA_TRY(check_weights(layer, layer.batchedmatmul()));
  }
  if (!any) return fail(ErrorCode::malformed, "the network is updatable, but none of its layers is");
  return {};
}

Status check_names(const Layers& layers, const proto::NetworkUpdateParameters& params) {
  std::set<std::string> names;
  const auto take = [&](const std::string& name) -> Status {
    if (names.insert(name).second) return {};
    return fail(ErrorCode::malformed, "two layers or losses are called '", name,
                "'; those of an updatable network need different names");
  };
  for (const Layer& layer : layers) MOKA_TRY(take(layer.name()));
  for (const proto::LossLayer& loss : params.losslayers()) MOKA_TRY(take(loss.name()));
  return {};
}

/// The layers of a network, and which of them read what others compute.
class Graph {
 public:
  explicit Graph(const Layers& layers) : layers_(layers), parents_(static_cast<size_t>(layers.size())) {
    for (size_t i = 0; i < parents_.size(); ++i) {
      for (const std::string& name : at(i).input())
        if (const auto from = producer(name)) parents_[i].push_back(*from);
      for (const std::string& name : at(i).output()) makers_[name] = i;
    }
  }

  const Layer& at(size_t i) const { return layers_[static_cast<int>(i)]; }
  /// The last layer that computes a value.
  std::optional<size_t> producer(const std::string& value) const {
    const auto it = makers_.find(value);
    return it == makers_.end() ? std::nullopt : std::optional(it->second);
  }
  const std::vector<size_t>& parents(size_t i) const { return parents_[i]; }
  size_t size() const { return parents_.size(); }

 private:
  const Layers& layers_;
  std::vector<std::vector<size_t>> parents_;
  std::map<std::string, size_t, std::less<>> makers_;
};

Status check_loss(const proto::LossLayer& loss, const Graph& graph, std::vector<std::string>& remarks) {
  const auto refuse = [&](const auto&... text) {
    return fail(ErrorCode::malformed, "loss '", loss.name(), "': ", text...);
  };
  if (loss.LossLayerType_case() == proto::LossLayer::LOSSLAYERTYPE_NOT_SET)
    return refuse("expected categorical cross entropy or mean squared error, got neither");
  const auto [input, target] = values_of(loss);
  const std::optional<size_t> from = graph.producer(input);
  if (!from) return refuse("no layer computes its input '", input, "'");
  if (loss.has_categoricalcrossentropylosslayer()) {
    const Layer& layer = graph.at(*from);
    if ((!layer.has_softmax() && !layer.has_softmaxnd()) || layer.output(0) != input)
      return refuse("categorical cross entropy needs the result of a softmax, and ", in_words(layer), " computes '",
                    input, "'");
    if (layer.has_softmaxnd())
      remarks.push_back(cat("Core ML's categorical cross entropy takes a softmax, not ", in_words(layer)));
  }
  if (target.empty()) return refuse("it has no target");
  if (const auto maker = graph.producer(target))
    return refuse("its target '", target, "' must come from the caller, but ", in_words(graph.at(*maker)),
                  " computes it");
  return {};
}

/// Follows the gradient of a loss back to the updatable layers. On any way, each layer between must pass it on.
Status check_ways(const proto::LossLayer& loss, const Graph& graph, std::vector<std::string>& remarks) {
  struct Place {
    size_t layer;
    const Layer* blocks;  ///< the layer on the way that passes no gradient on
  };
  std::set<std::pair<size_t, bool>> seen;
  std::vector<Place> left;
  const auto visit = [&](Place place) {
    if (seen.emplace(place.layer, place.blocks != nullptr).second) left.push_back(place);
  };
  const size_t first = *graph.producer(values_of(loss).input);
  visit({first, nullptr});
  while (!left.empty()) {
    Place place = left.back();
    left.pop_back();
    const Layer& layer = graph.at(place.layer);
    if (layer.isupdatable() && place.blocks != nullptr)
      return fail(ErrorCode::malformed, in_words(*place.blocks),
                  ": it passes no gradient on, but lies between the loss '", loss.name(), "' and the updatable ",
                  in_words(layer));
    const bool at_loss = place.layer == first && loss.has_categoricalcrossentropylosslayer();
    const Support support = at_loss ? Support::core_ml : gradients_of(layer);
    if (place.blocks == nullptr && support == Support::none) place.blocks = &layer;
    for (const size_t parent : graph.parents(place.layer)) visit({parent, place.blocks});
  }
  for (size_t i = 0; i < graph.size(); ++i)
    if (graph.at(i).isupdatable() && !seen.contains({i, false}))
      remarks.push_back(
          cat(in_words(graph.at(i)), " is updatable, but the loss '", loss.name(), "' does not depend on it"));
  return {};
}

Status check_parameters(const proto::NetworkUpdateParameters& params, std::vector<std::string>& remarks) {
  const proto::Optimizer& optimizer = params.optimizer();
  if (optimizer.OptimizerType_case() == proto::Optimizer::OPTIMIZERTYPE_NOT_SET)
    return fail(ErrorCode::malformed, "expected an SGD or Adam optimizer, got none");
  std::vector<Parameter> all = optimizer_parameters(optimizer);
  for (const Parameter& p : network_parameters(params)) all.push_back(p);
  for (const Parameter& p : all) {
    const bool given = p.number != nullptr || p.integer != nullptr || p.flag != nullptr;
    if (p.needed && !given) return fail(ErrorCode::malformed, "the update needs the parameter '", p.name, "'");
    Status valid = check_parameter(p);
    if (valid.ok()) continue;
    // Core ML does not look at the momentum.
    if (p.name != std::string_view("momentum")) return valid;
    remarks.push_back(valid.error().to_string());
  }
  return {};
}

Status check_training_inputs(const proto::Model& model, const proto::LossLayer& loss) {
  const proto::ModelDescription& d = model.description();
  const std::string target = values_of(loss).target;
  if (d.traininginput_size() < 2)
    return fail(ErrorCode::malformed, "expected at least two training inputs, an input of the model and the target '",
                target, "', got ", d.traininginput_size());
  for (int i = 0; i < d.traininginput_size(); i++)
    for (int k = 0; k < i; k++)
      if (d.traininginput(i).name() == d.traininginput(k).name())
        return fail(ErrorCode::malformed, "two training inputs are called '", d.traininginput(i).name(), "'");
  const auto is_input = [&](const proto::FeatureDescription& f) {
    return std::any_of(d.input().begin(), d.input().end(), [&](const auto& input) { return is_same(f, input); });
  };
  if (std::none_of(d.traininginput().begin(), d.traininginput().end(), is_input))
    return fail(ErrorCode::malformed, "expected an input of the model, with its type, among the training inputs");
  const bool classifier = model.has_neuralnetworkclassifier();
  bool found = false;
  for (const proto::FeatureDescription& f : d.traininginput()) {
    if (is_input(f)) continue;
    found = found || f.name() == target;
    if (!classifier || f.name() != d.predictedfeaturename()) continue;
    for (const proto::FeatureDescription& output : d.output()) {
      if (output.name() != f.name()) continue;
      found = true;
      if (f.type().Type_case() != output.type().Type_case())
        return fail(ErrorCode::malformed, "training input '", f.name(), "': expected ",
                    output.type().has_int64type() ? "an integer" : "a text", ", as the classifier predicts, got ",
                    f.type().has_int64type()    ? "an integer"
                    : f.type().has_stringtype() ? "a text"
                                                : "another type");
    }
  }
  if (found) return {};
  return fail(
      ErrorCode::malformed, "the training inputs lack the target of the loss '", loss.name(), "': '",
      classifier && !d.predictedfeaturename().empty() ? cat(d.predictedfeaturename(), "' or '", target) : target, "'");
}

}  // namespace

Status check_network(const proto::Model& model, std::vector<std::string>& remarks) {
  const Layers& layers = *format::layers_of(model);
  const proto::NetworkUpdateParameters& params = *parameters_of(model);
  MOKA_TRY(check_layers(layers, remarks));
  MOKA_TRY(check_names(layers, params));
  if (params.losslayers_size() != 1)
    return fail(ErrorCode::malformed, "expected one loss, got ", params.losslayers_size());
  const proto::LossLayer& loss = params.losslayers(0);
  const Graph graph(layers);
  MOKA_TRY(check_loss(loss, graph, remarks));
  MOKA_TRY(check_parameters(params, remarks));
  MOKA_TRY(check_ways(loss, graph, remarks));
  return check_training_inputs(model, loss);
}

}  // namespace moka::import::update
