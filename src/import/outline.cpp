#include "import/outline.h"

#include "format/proto/model.pb.h"
#include "import/neuralnetwork/network.h"

namespace moka::import {
namespace {

template <class Layers>
std::vector<OutlineLayer> outline(const Layers& layers) {
  std::vector<OutlineLayer> out;
  for (const proto::NeuralNetworkLayer& l : layers) {
    const nn::LayerImport* known = nn::find_layer(l.layer_case());
    out.push_back({l.name(),
                   known != nullptr ? std::string(known->name) : cat("layer ", static_cast<int>(l.layer_case())),
                   {l.input().begin(), l.input().end()},
                   {l.output().begin(), l.output().end()}});
  }
  return out;
}

}  // namespace

std::vector<OutlineLayer> outline_layers(const proto::Model& model) {
  if (model.has_neuralnetwork()) return outline(model.neuralnetwork().layers());
  if (model.has_neuralnetworkclassifier()) return outline(model.neuralnetworkclassifier().layers());
  if (model.has_neuralnetworkregressor()) return outline(model.neuralnetworkregressor().layers());
  return {};
}

std::vector<std::string> outline_names(const proto::Model& model) {
  const auto names = [](const proto::Pipeline& p) {
    return std::vector<std::string>(p.names().begin(), p.names().end());
  };
  if (model.has_pipeline()) return names(model.pipeline());
  if (model.has_pipelineclassifier()) return names(model.pipelineclassifier().pipeline());
  if (model.has_pipelineregressor()) return names(model.pipelineregressor().pipeline());
  return {};
}

}  // namespace moka::import
