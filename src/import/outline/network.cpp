// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodel/named_fields.h"
#include "format/proto/model.pb.h"
#include "import/neuralnetwork/control.h"
#include "import/outline/window.h"

namespace moka::import {
namespace {

using proto::NeuralNetworkLayer;
using proto::WeightParams;
using Layers = google::protobuf::RepeatedPtrField<NeuralNetworkLayer>;

class NetworkReader {
 public:
  NetworkReader(const format::ModelFile& file, Outline& out) : file_(file), out_(out) {}

  void layers(const Layers& layers, int depth) {
    for (const NeuralNetworkLayer& l : layers) {
      const nn::LayerImport* known = nn::find_layer(l.layer_case());
      std::string type = known != nullptr     ? std::string(known->name)
                         : l.layer_case() > 0 ? cat("layer ", static_cast<int>(l.layer_case()))
                                              : "unknown layer";
      layer_ = l.name();
      out_.layers.push_back({l.name(),
                             std::move(type),
                             {l.input().begin(), l.input().end()},
                             {l.output().begin(), l.output().end()},
                             depth,
                             l.custom().classname(),
                             settings(l),
                             window_of(l)});
      message_ = &l;
      const size_t here = out_.layers.size() - 1, first = out_.weights.size();
      weights(l);
      for (size_t i = first; i < out_.weights.size(); ++i) out_.layers[here].weights.push_back(i);
      const std::vector<const proto::NeuralNetwork*> inside = nn::networks_inside(l);
      if (!inside.empty() && depth >= nn::kMaxListedDepth)
        out_.faults.push_back(
            cat("layer '", l.name(), "': branches and loops nested more than ", nn::kMaxListedDepth, " deep"));
      else
        for (const proto::NeuralNetwork* network : inside) this->layers(network->layers(), depth + 1);
    }
  }

 private:
  /// The fields of the layer's own message.
  static std::vector<Outline::Typed> settings(const NeuralNetworkLayer& l) {
    constexpr size_t kMostBytes = size_t{1} << 20;
    std::vector<Outline::Typed> out;
    if (l.has_branch() || l.has_loop() || l.ByteSizeLong() > kMostBytes) return out;
    for (auto& [path, text] : format::named_fields(l.SerializeAsString(), "NeuralNetworkLayer")) {
      // "convolution.kernelSize": the type of the layer stands beside it.
      const size_t dot = path.find('.');
      if (path == "isUpdatable") out.emplace_back(path, text);
      if (dot == std::string::npos || path.starts_with("inputTensor") || path.starts_with("outputTensor")) continue;
      out.emplace_back(path.substr(dot + 1), std::move(text));
    }
    return out;
  }

  void weight(std::string_view field, const WeightParams& w) {
    auto data = file_.weight_data(w);
    const std::string name = cat(layer_, ".", field);
    if (!data.ok()) {
      out_.faults.push_back(cat("weight '", name, "': ", data.error().to_string()));
      return;
    }
    using Kind = format::WeightData::Kind;
    if (data->kind == Kind::none) return;
    const uint64_t bytes = data->bytes.size(), bits = w.quantization().numberofbits();
    Outline::Weight out;
    out.name = name;
    out.bytes = bytes;
    out.data = data->bytes;
    out.storage = w.quantization().has_lookuptablequantization() ? "inline palette"
                  : w.quantization().has_linearquantization()    ? "inline linear"
                                                                 : "inline";
    const std::vector<int64_t> shape = weight_shape(*message_, field);
    switch (data->kind) {
      case Kind::float32: out.type = array_type("fp32", bytes / 4, shape); break;
      case Kind::float16: out.type = array_type("fp16", bytes / 2, shape); break;
      case Kind::int8_raw: out.type = array_type("int8", bytes, shape); break;
      default:
        if (bits >= 1 && bits <= 8) {
          out.type = array_type(cat("uint", bits), bytes * 8 / bits, shape, bits < 8 ? 8 / bits : 0);
          out.high_first_bits = static_cast<int>(bits);
        } else {  // no type of elements
          out.type = vector_type("bytes", bytes);
          out.data = {};
        }
    }
    out_.weights.push_back(std::move(out));
  }

  /// Layers with the members `weights` and `bias`.
  template <class Layer>
  void weights_and_bias(const Layer& l) {
    weight("weights", l.weights());
    weight("bias", l.bias());
  }

  void activation(std::string_view field, const proto::ActivationParams& a) {
    if (a.has_prelu()) weight(cat(field, "alpha"), a.prelu().alpha());
    if (!a.has_parametricsoftplus()) return;
    weight(cat(field, "alpha"), a.parametricsoftplus().alpha());
    weight(cat(field, "beta"), a.parametricsoftplus().beta());
  }

  void gru(const proto::GRULayerParams& l) {
    weight("updateGateWeightMatrix", l.updategateweightmatrix());
    weight("resetGateWeightMatrix", l.resetgateweightmatrix());
    weight("outputGateWeightMatrix", l.outputgateweightmatrix());
    weight("updateGateRecursionMatrix", l.updategaterecursionmatrix());
    weight("resetGateRecursionMatrix", l.resetgaterecursionmatrix());
    weight("outputGateRecursionMatrix", l.outputgaterecursionmatrix());
    weight("updateGateBiasVector", l.updategatebiasvector());
    weight("resetGateBiasVector", l.resetgatebiasvector());
    weight("outputGateBiasVector", l.outputgatebiasvector());
  }

  void lstm(std::string_view direction, const proto::LSTMWeightParams& l) {
    const auto add = [&](std::string_view field, const WeightParams& w) { weight(cat(direction, field), w); };
    add("inputGateWeightMatrix", l.inputgateweightmatrix());
    add("forgetGateWeightMatrix", l.forgetgateweightmatrix());
    add("blockInputWeightMatrix", l.blockinputweightmatrix());
    add("outputGateWeightMatrix", l.outputgateweightmatrix());
    add("inputGateRecursionMatrix", l.inputgaterecursionmatrix());
    add("forgetGateRecursionMatrix", l.forgetgaterecursionmatrix());
    add("blockInputRecursionMatrix", l.blockinputrecursionmatrix());
    add("outputGateRecursionMatrix", l.outputgaterecursionmatrix());
    add("inputGateBiasVector", l.inputgatebiasvector());
    add("forgetGateBiasVector", l.forgetgatebiasvector());
    add("blockInputBiasVector", l.blockinputbiasvector());
    add("outputGateBiasVector", l.outputgatebiasvector());
    add("inputGatePeepholeVector", l.inputgatepeepholevector());
    add("forgetGatePeepholeVector", l.forgetgatepeepholevector());
    add("outputGatePeepholeVector", l.outputgatepeepholevector());
  }

  void weights(const NeuralNetworkLayer& l) {
    switch (l.layer_case()) {
      case NeuralNetworkLayer::kConvolution: return weights_and_bias(l.convolution());
      case NeuralNetworkLayer::kConvolution3D: return weights_and_bias(l.convolution3d());
      case NeuralNetworkLayer::kInnerProduct: return weights_and_bias(l.innerproduct());
      case NeuralNetworkLayer::kEmbedding: return weights_and_bias(l.embedding());
      case NeuralNetworkLayer::kEmbeddingND: return weights_and_bias(l.embeddingnd());
      case NeuralNetworkLayer::kBatchedMatmul: return weights_and_bias(l.batchedmatmul());
      case NeuralNetworkLayer::kActivation: return activation("", l.activation());
      case NeuralNetworkLayer::kBias: return weight("bias", l.bias().bias());
      case NeuralNetworkLayer::kLoadConstant: return weight("data", l.loadconstant().data());
      case NeuralNetworkLayer::kLoadConstantND: return weight("data", l.loadconstantnd().data());
      case NeuralNetworkLayer::kGru: return gru(l.gru());
      case NeuralNetworkLayer::kUniDirectionalLSTM: return lstm("", l.unidirectionallstm().weightparams());
      case NeuralNetworkLayer::kScale: weight("scale", l.scale().scale()); return weight("bias", l.scale().bias());
      case NeuralNetworkLayer::kLayerNormalization:
        weight("gamma", l.layernormalization().gamma());
        return weight("beta", l.layernormalization().beta());
      case NeuralNetworkLayer::kBatchnorm:
        weight("gamma", l.batchnorm().gamma());
        weight("beta", l.batchnorm().beta());
        weight("mean", l.batchnorm().mean());
        return weight("variance", l.batchnorm().variance());
      case NeuralNetworkLayer::kSimpleRecurrent:
        weight("weightMatrix", l.simplerecurrent().weightmatrix());
        weight("recursionMatrix", l.simplerecurrent().recursionmatrix());
        return weight("biasVector", l.simplerecurrent().biasvector());
      case NeuralNetworkLayer::kBiDirectionalLSTM:
        for (int i = 0; i < l.bidirectionallstm().weightparams_size(); ++i)
          lstm(i == 0 ? "forward." : "backward.", l.bidirectionallstm().weightparams(i));
        return;
      case NeuralNetworkLayer::kCustom:
        for (int i = 0; i < l.custom().weights_size(); ++i) weight(cat("weights", i), l.custom().weights(i));
        return;
      default: return;
    }
  }

  const format::ModelFile& file_;
  Outline& out_;
  std::string layer_;
  const NeuralNetworkLayer* message_ = nullptr;
};

}  // namespace

void outline_network(const proto::Model& model, const format::ModelFile& file, Outline& out) {
  outline_preprocessing(model, out);
  NetworkReader reader(file, out);
  if (model.has_neuralnetwork()) reader.layers(model.neuralnetwork().layers(), 0);
  if (model.has_neuralnetworkclassifier()) reader.layers(model.neuralnetworkclassifier().layers(), 0);
  if (model.has_neuralnetworkregressor()) reader.layers(model.neuralnetworkregressor().layers(), 0);
}

}  // namespace moka::import
