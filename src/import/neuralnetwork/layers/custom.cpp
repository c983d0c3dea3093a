#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

Status custom(Layer& l) {
  const auto& p = l.p.custom();
  std::string note = p.description().empty() ? std::string("no description") : p.description();
  return l.unsupported(cat("custom layer '", p.classname(), "' (", note,
                           ") has no implementation: custom layers are not supported yet"));
}

}  // namespace

std::span<const LayerImport> layers_custom() {
  static const LayerImport list[] = {{proto::NeuralNetworkLayer::kCustom, "custom", custom}};
  return list;
}

}  // namespace moka::import::nn
