// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "format/mlmodelc/layer_names.h"
#include "import/common/constants.h"
#include "import/importer.h"
#include "import/model_type.h"
#include "import/neuralnetwork/network.h"
#include "import/update/parts.h"

namespace moka::import {

namespace update {

const proto::NetworkUpdateParameters* parameters_of(const proto::Model& model) {
  if (model.has_neuralnetwork()) return &model.neuralnetwork().updateparams();
  if (model.has_neuralnetworkclassifier()) return &model.neuralnetworkclassifier().updateparams();
  if (model.has_neuralnetworkregressor()) return &model.neuralnetworkregressor().updateparams();
  return nullptr;
}

std::vector<Parameter> optimizer_parameters(const proto::Optimizer& o) {
  const auto common = [](const auto& m) {
    return std::vector<Parameter>{
        {.name = "learningRate", .number = m.has_learningrate() ? &m.learningrate() : nullptr},
        {.name = "miniBatchSize", .integer = m.has_minibatchsize() ? &m.minibatchsize() : nullptr}};
  };
  if (o.has_sgdoptimizer()) {
    const proto::SGDOptimizer& m = o.sgdoptimizer();
    std::vector<Parameter> out = common(m);
    out.push_back({.name = "momentum", .number = m.has_momentum() ? &m.momentum() : nullptr, .needed = false});
    return out;
  }
  if (!o.has_adamoptimizer()) return {};
  const proto::AdamOptimizer& m = o.adamoptimizer();
  std::vector<Parameter> out = common(m);
  out.push_back({.name = "beta1", .number = m.has_beta1() ? &m.beta1() : nullptr});
  out.push_back({.name = "beta2", .number = m.has_beta2() ? &m.beta2() : nullptr});
  out.push_back({.name = "eps", .number = m.has_eps() ? &m.eps() : nullptr});
  return out;
}

std::vector<Parameter> network_parameters(const proto::NetworkUpdateParameters& u) {
  return {{.name = "epochs", .integer = u.has_epochs() ? &u.epochs() : nullptr},
          {.name = "shuffle", .flag = u.has_shuffle() ? &u.shuffle() : nullptr, .needed = false},
          {.name = "seed", .integer = u.has_seed() ? &u.seed() : nullptr, .needed = false, .positive = false}};
}

Parameter neighbors_parameter(const proto::KNearestNeighborsClassifier& c) {
  return {.name = "numberOfNeighbors", .integer = c.has_numberofneighbors() ? &c.numberofneighbors() : nullptr};
}

std::string layer_type(const proto::NeuralNetworkLayer& layer) {
  const nn::LayerImport* known = nn::find_layer(layer.layer_case());
  return known != nullptr ? std::string(known->name) : cat("layer ", static_cast<int>(layer.layer_case()));
}

LossValues values_of(const proto::LossLayer& loss) {
  if (loss.has_categoricalcrossentropylosslayer())
    return {loss.categoricalcrossentropylosslayer().input(), loss.categoricalcrossentropylosslayer().target()};
  if (loss.has_meansquarederrorlosslayer())
    return {loss.meansquarederrorlosslayer().input(), loss.meansquarederrorlosslayer().target()};
  return {};
}

bool is_same(const proto::FeatureDescription& a, const proto::FeatureDescription& b) {
  return a.name() == b.name() && a.type().SerializeAsString() == b.type().SerializeAsString();
}

}  // namespace update

namespace {

using update::Parameter;

void add(const Parameter& from, std::vector<UpdateParameter>& out) {
  UpdateParameter to;
  to.name = from.name;
  if (from.number != nullptr) {
    to.value = from.number->defaultvalue();
    if (from.number->has_range()) to.range = {from.number->range().minvalue(), from.number->range().maxvalue()};
  } else if (from.integer != nullptr) {
    to.value = from.integer->defaultvalue();
    if (from.integer->has_range()) to.bounds = {from.integer->range().minvalue(), from.integer->range().maxvalue()};
    to.allowed.assign(from.integer->set().values().begin(), from.integer->set().values().end());
  } else if (from.flag != nullptr) {
    to.value = from.flag->defaultvalue();
  } else {
    return;
  }
  out.push_back(std::move(to));
}

constexpr const char* kRecurrentWeights[] = {"weight_ih", "weight_hh", "bias", "peephole"};

/// The names under which the importer and runtime/parameters.h know the weights of a layer. `name`: with the prefix.
std::vector<std::string> weights_of(const proto::NeuralNetworkLayer& layer, const std::string& name) {
  const auto named = [&](const char* what) { return identifier(cat(name, "_", what)); };
  bool bias = false;
  switch (layer.layer_case()) {
    case proto::NeuralNetworkLayer::kConvolution: bias = layer.convolution().hasbias(); break;
    case proto::NeuralNetworkLayer::kInnerProduct: bias = layer.innerproduct().hasbias(); break;
    case proto::NeuralNetworkLayer::kBatchedMatmul: bias = layer.batchedmatmul().hasbias(); break;
    case proto::NeuralNetworkLayer::kUniDirectionalLSTM: {
      std::vector<std::string> out;
      const auto& p = layer.unidirectionallstm().params();
      for (const char* what : kRecurrentWeights) {
        const bool is_there = what == std::string_view("bias")
                                  ? p.hasbiasvectors() || (p.forgetbias() && !p.coupledinputandforgetgate())
                                  : what != std::string_view("peephole") || p.haspeepholevectors();
        if (is_there) out.push_back(cat(name, "_", what));
      }
      return out;
    }
    default: return {};
  }
  std::vector<std::string> out{named("weights")};
  if (bias) out.push_back(named("bias"));
  return out;
}

/// Gives the layers of a network names so that no two weights are called alike, and none like an input or a blob.
class WeightNames {
 public:
  /// `whole`: the model with the inputs of the function.
  WeightNames(const proto::Model& whole, const proto::Model& network, const std::string& prefix) : prefix_(prefix) {
    for (const auto& input : whole.description().input()) taken_.insert(input.name());
    for (const auto& input : network.description().input()) taken_.insert(identifier(prefix + input.name()));
    for (const proto::NeuralNetworkLayer& layer : *format::layers_of(network)) {
      for (const auto* blobs : {&layer.input(), &layer.output()})
        for (const std::string& blob : *blobs) taken_.insert(identifier(prefix + blob));
      if (layer.isupdatable()) continue;
      for (const char* what : kRecurrentWeights) taken_.insert(cat(prefix, layer.name(), "_", what));
    }
  }

  UpdatableLayer operator()(const proto::NeuralNetworkLayer& layer) {
    UpdatableLayer out{layer.name(), update::layer_type(layer), layer.name(), {}};
    // In patterns of names it stands for any text.
    std::replace(out.own_name.begin(), out.own_name.end(), '*', '_');
    const std::string base = out.own_name;
    const auto is_taken = [&](const std::string& name) { return taken_.contains(name); };
    out.parameters = weights_of(layer, prefix_ + base);
    int& last = last_[out.parameters.empty() ? base : out.parameters[0]];
    while (std::any_of(out.parameters.begin(), out.parameters.end(), is_taken)) {
      out.own_name = cat(base, "_", ++last);
      out.parameters = weights_of(layer, prefix_ + out.own_name);
    }
    taken_.insert(out.parameters.begin(), out.parameters.end());
    return out;
  }

 private:
  const std::string& prefix_;
  std::set<std::string> taken_;
  std::map<std::string, int> last_;  ///< number behind a name, by the first of the weights
};

/// The training input that gives the target of a loss: a feature of that name or else, for a classifier, its label.
std::string given_by(const std::string& target, const proto::Model& model) {
  const auto& inputs = model.description().traininginput();
  const auto has = [&](const std::string& name) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const auto& f) { return f.name() == name; });
  };
  if (has(target)) return target;
  const std::string& label = model.description().predictedfeaturename();
  return model.has_neuralnetworkclassifier() && !label.empty() && has(label) ? label : std::string();
}

void describe_network(const proto::Model& whole, const proto::Model& model, UpdateDescription& out) {
  const proto::NetworkUpdateParameters& params = *update::parameters_of(model);
  WeightNames named(whole, model, out.prefix);
  for (const proto::NeuralNetworkLayer& layer : *format::layers_of(model))
    if (layer.isupdatable()) out.layers.push_back(named(layer));
  for (const proto::LossLayer& loss : params.losslayers()) {
    auto [input, target] = update::values_of(loss);
    if (loss.LossLayerType_case() == proto::LossLayer::LOSSLAYERTYPE_NOT_SET) continue;
    const auto kind = loss.has_meansquarederrorlosslayer() ? LossLayer::Kind::mean_squared_error
                                                           : LossLayer::Kind::categorical_cross_entropy;
    out.losses.push_back({loss.name(), kind, input, target, given_by(target, model)});
  }
  out.optimizer = params.optimizer().has_sgdoptimizer() ? "sgd" : params.optimizer().has_adamoptimizer() ? "adam" : "";
  for (const Parameter& p : update::optimizer_parameters(params.optimizer())) add(p, out.parameters);
  for (const Parameter& p : update::network_parameters(params)) add(p, out.parameters);
}

void describe_neighbors(const proto::KNearestNeighborsClassifier& c, const format::ModelFile& file,
                        UpdateDescription& out) {
  const proto::NearestNeighborsIndex& index = c.nearestneighborsindex();
  NearestNeighbors to;
  to.dimensions = index.numberofdimensions();
  if (const auto samples = file.sample_data(index); samples.ok()) to.samples = static_cast<int64_t>(samples->count);
  to.index = index.has_singlekdtreeindex() ? "kdTree" : index.has_linearindex() ? "linear" : "";
  to.leaf_size = index.singlekdtreeindex().leafsize();
  to.weighting = c.has_inversedistanceweighting() ? "inverseDistance" : c.has_uniformweighting() ? "uniform" : "";
  const auto label = c.DefaultClassLabel_case();
  using Knn = proto::KNearestNeighborsClassifier;
  to.string_labels = c.has_stringclasslabels() || (!c.has_int64classlabels() && label == Knn::kDefaultStringLabel);
  if (label == Knn::kDefaultStringLabel) to.default_label = c.defaultstringlabel();
  if (label == Knn::kDefaultInt64Label) to.default_label = cat(c.defaultint64label());
  out.neighbors = std::move(to);
  add(update::neighbors_parameter(c), out.parameters);
}

void describe_model(const proto::Model& whole, const proto::Model& model, const format::ModelFile& file, int depth,
                    UpdateDescription& out) {
  if (update::parameters_of(model) != nullptr && format::layers_of(model) != nullptr)
    return describe_network(whole, model, out);
  if (model.has_knearestneighborsclassifier())
    return describe_neighbors(model.knearestneighborsclassifier(), file, out);
  if (format::pipeline_of(model) == nullptr || depth > kMaxPipelineDepth) return;
  const auto stages = file.stages(model);
  if (stages.empty()) return;
  const size_t last = stages.size() - 1;
  out.stage.push_back(last);
  out.prefix += cat("model", last, "_");
  describe_model(whole, *stages[last].model, stages[last].file, depth + 1, out);
}

bool holds_updatable(const proto::Model& model, const format::ModelFile& file, int depth) {
  if (model.isupdatable()) return true;
  if (format::pipeline_of(model) == nullptr || depth > kMaxPipelineDepth) return false;
  const auto stages = file.stages(model);
  return std::any_of(stages.begin(), stages.end(),
                     [&](const auto& stage) { return holds_updatable(*stage.model, stage.file, depth + 1); });
}

}  // namespace

std::optional<UpdateDescription> describe_update(const format::ModelFile& file) {
  return describe_update(file.spec(), file);
}

std::optional<UpdateDescription> describe_update(const proto::Model& model, const format::ModelFile& file) {
  if (!holds_updatable(model, file, 0)) return std::nullopt;
  UpdateDescription out;
  for (const proto::FeatureDescription& input : model.description().traininginput()) {
    auto feature = read_feature(input);
    if (feature.ok())
      out.training_inputs.push_back(std::move(feature).value());
    else if (out.fault.empty())
      out.fault = std::move(feature).error().in(cat("training input '", input.name(), "'")).to_string();
  }
  if (model.isupdatable()) describe_model(model, model, file, 0, out);
  if (Status valid = check_update(model, file, out.remarks); !valid.ok() && out.fault.empty())
    out.fault = valid.error().to_string();
  return out;
}

}  // namespace moka::import
