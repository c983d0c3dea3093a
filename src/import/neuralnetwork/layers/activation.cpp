// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

/// Applies an operation to one input in whatever form the input has.
Status elementwise(Layer& l, std::string_view op, std::vector<NamedArg> args = {}) {
  Form form = MOKA_TRY(l.cheap_form(0));
  args.emplace(args.begin(), "x", MOKA_TRY(l.in(0, form)));
  return l.set(0, MOKA_TRY(l.op(op, std::move(args))), form);
}

/// A parameter with one value for all channels or one value per channel.
Result<Tensor> per_channel(Layer& l, const proto::WeightParams& w, int64_t channels, std::string_view what) {
  int64_t n = MOKA_TRY(l.count(w, what));
  if (n != 1 || channels == 1) return l.numbers(w, MOKA_TRY(l.shape({static_cast<uint64_t>(channels)}, what)), what);
  float v = MOKA_TRY(l.numbers(w, Shape{1}, what)).as<float>()[0];
  return Tensor::f32(Shape{channels}, std::vector<float>(static_cast<size_t>(channels), v));
}

Status with_channels(Layer& l, std::string_view op, const proto::WeightParams& alpha, const proto::WeightParams* beta) {
  Value* x = MOKA_TRY(l.channels(0));
  int64_t channels = x->type.shape()[1];
  if (channels < 0) return l.unsupported("an unknown number of channels");
  if (channels > (int64_t{1} << 24)) return l.unsupported(cat(channels, " channels"));
  std::vector<NamedArg> args{{"x", x}};
  args.emplace_back("alpha", MOKA_TRY(per_channel(l, alpha, channels, "alpha")));
  if (beta != nullptr) args.emplace_back("beta", MOKA_TRY(per_channel(l, *beta, channels, "beta")));
  return l.set_channels(0, MOKA_TRY(l.op(op, std::move(args))));
}

Status activation(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& a = l.p.activation();
  switch (a.NonlinearityType_case()) {
    case proto::ActivationParams::kLinear:
      return elementwise(l, "linear_activation", {{"alpha", a.linear().alpha()}, {"beta", a.linear().beta()}});
    case proto::ActivationParams::kReLU: return elementwise(l, "relu");
    case proto::ActivationParams::kLeakyReLU: return elementwise(l, "leaky_relu", {{"alpha", a.leakyrelu().alpha()}});
    case proto::ActivationParams::kThresholdedReLU:
      return elementwise(l, "thresholded_relu", {{"alpha", a.thresholdedrelu().alpha()}});
    case proto::ActivationParams::kPReLU: return with_channels(l, "prelu", a.prelu().alpha(), nullptr);
    case proto::ActivationParams::kTanh: return elementwise(l, "tanh");
    case proto::ActivationParams::kScaledTanh:
      return elementwise(l, "scaled_tanh", {{"alpha", a.scaledtanh().alpha()}, {"beta", a.scaledtanh().beta()}});
    case proto::ActivationParams::kSigmoid: return elementwise(l, "sigmoid");
    case proto::ActivationParams::kSigmoidHard:
      return elementwise(l, "sigmoid_hard", {{"alpha", a.sigmoidhard().alpha()}, {"beta", a.sigmoidhard().beta()}});
    case proto::ActivationParams::kELU: return elementwise(l, "elu", {{"alpha", a.elu().alpha()}});
    case proto::ActivationParams::kSoftsign: return elementwise(l, "softsign");
    case proto::ActivationParams::kSoftplus: return elementwise(l, "softplus");
    case proto::ActivationParams::kParametricSoftplus:
      return with_channels(l, "softplus_parametric", a.parametricsoftplus().alpha(), &a.parametricsoftplus().beta());
    default: return l.malformed("no activation function is given");
  }
}

Status clamped_relu(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& a = l.p.clampedrelu();
  return elementwise(l, "clamped_relu", {{"alpha", a.alpha()}, {"beta", a.beta()}});
}

}  // namespace

std::span<const LayerImport> layers_activation() {
  static const LayerImport list[] = {
      {proto::NeuralNetworkLayer::kActivation, "activation", activation},
      {proto::NeuralNetworkLayer::kClampedReLU, "clampedReLU", clamped_relu},
  };
  return list;
}

}  // namespace moka::import::nn
