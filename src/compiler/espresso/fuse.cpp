// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "compiler/espresso/writer.h"

namespace moka::compiler::espresso {
namespace {

using Layers = google::protobuf::RepeatedPtrField<Layer>;

struct Uses {
  std::map<std::string, std::vector<int>> of;  ///< the layers that read a blob
  const std::set<std::string>* outputs = nullptr;

  /// The layer that reads the blob if nothing else does; -1 otherwise.
  int only(const std::string& blob) const {
    auto it = of.find(blob);
    return outputs->contains(blob) || it == of.end() || it->second.size() != 1 ? -1 : it->second[0];
  }
};

/// Whether Core ML's compiler fuses the next layer into this one, as far as compiled models show.
bool is_convolution(const Layer& layer) { return layer.has_convolution() && !layer.convolution().isdeconvolution(); }

bool folds(const Layer& layer, const Layer& norm) {
  const auto& p = norm.batchnorm();
  return is_convolution(layer) && !layer.convolution().weights().has_quantization() && norm.has_batchnorm() &&
         !p.computemeanvar() && !p.instancenormalization() && p.channels() == layer.convolution().outputchannels() &&
         norm.output_size() == 1;
}

}  // namespace

std::vector<Fused> fuse(const Layers& layers, const std::set<std::string>& outputs) {
  Uses uses{{}, &outputs};
  for (int i = 0; i < layers.size(); ++i)
    for (const std::string& blob : layers[i].input()) uses.of[blob].push_back(i);
  std::vector<bool> taken(static_cast<size_t>(layers.size()));
  std::vector<Fused> out;
  for (int i = 0; i < layers.size(); ++i) {
    if (taken[static_cast<size_t>(i)]) continue;
    const Layer& layer = layers[i];
    Fused fused{&layer, nullptr, false, false, layer.output_size() > 0 ? layer.output(0) : ""};
    const auto next = [&] { return uses.only(fused.top); };
    const auto take = [&](int index) {
      taken[static_cast<size_t>(index)] = true;
      fused.top = layers[index].output(0);
    };
    if (int n = next(); n > i && folds(layer, layers[n])) {
      fused.norm = &layers[n].batchnorm();
      take(n);
    }
    if (is_convolution(layer) || layer.has_innerproduct())
      if (int n = next(); n > i && layers[n].has_activation() && layers[n].output_size() == 1) {
        fused.relu = layers[n].activation().has_relu();
        fused.tanh = layers[n].activation().has_tanh();
        if (fused.relu || fused.tanh) take(n);
      }
    out.push_back(std::move(fused));
  }
  return out;
}

}  // namespace moka::compiler::espresso
