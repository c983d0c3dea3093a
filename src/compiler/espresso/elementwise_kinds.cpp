// SPDX-License-Identifier: Apache-2.0
#include "compiler/espresso/writer.h"

namespace moka::compiler::espresso {
namespace {

using Unary = proto::UnaryFunctionLayerParams;

Status add(Network& net, const Fused& fused, int operation, float alpha = 1) {
  json out = layer_object(net, *fused.layer, "elementwise", fused.top);
  out["operation"] = operation;
  out["alpha"] = alpha;
  out["beta"] = 0;
  out["fused_relu"] = 0;
  net.layers.push_back(std::move(out));
  return {};
}

/// An operation on two blobs, or on a blob and a number.
Status between(Network& net, const Fused& fused, int operation, float alpha) {
  return add(net, fused, operation, fused.layer->input_size() == 1 ? alpha : 1);
}

Status sum(Network& net, const Fused& fused) { return between(net, fused, 0, fused.layer->add().alpha()); }
Status product(Network& net, const Fused& fused) { return between(net, fused, 1, fused.layer->multiply().alpha()); }

Status minimum(Network& net, const Fused& fused) { return add(net, fused, 22); }
Status maximum(Network& net, const Fused& fused) { return add(net, fused, 23); }

Status unary(Network& net, const Fused& fused) {
  const Unary& p = fused.layer->unary();
  // A specification without a scale means 1.
  if ((p.scale() != 1 && p.scale() != 0) || p.shift() != 0)
    return fail(ErrorCode::unsupported, "a scale or shift of the input");
  const bool uses_epsilon = p.type() == Unary::INVERSE || p.type() == Unary::RSQRT || p.type() == Unary::LOG;
  if (uses_epsilon && p.epsilon() != 1e-6f) return fail(ErrorCode::unsupported, "an epsilon of ", p.epsilon());
  switch (p.type()) {
    case Unary::INVERSE: return add(net, fused, 10);
    case Unary::SQRT: return add(net, fused, 11);
    case Unary::RSQRT: return add(net, fused, 12);
    case Unary::POWER: return add(net, fused, 13, p.alpha());
    case Unary::ABS: return add(net, fused, 24);
    case Unary::THRESHOLD: return add(net, fused, 25, p.alpha());
    case Unary::LOG: return add(net, fused, 26);
    case Unary::EXP: return add(net, fused, 27);
    default: return fail(ErrorCode::unsupported, "function ", static_cast<int>(p.type()));
  }
}

Status activation(Network& net, const Fused& fused) {
  const auto& p = fused.layer->activation();
  json out = layer_object(net, *fused.layer, "activation", fused.top);
  const auto set = [&](int mode, float alpha = 1, float beta = 0) {
    out["mode"] = mode;
    if (alpha != 1 || mode == 2) out["alpha"] = alpha;
    out["beta"] = beta;
  };
  switch (p.NonlinearityType_case()) {
    case proto::ActivationParams::kReLU: set(0); break;
    case proto::ActivationParams::kTanh: set(1); break;
    case proto::ActivationParams::kLeakyReLU: set(2, p.leakyrelu().alpha()); break;
    case proto::ActivationParams::kSigmoid: set(3); break;
    case proto::ActivationParams::kScaledTanh: set(5, p.scaledtanh().alpha(), p.scaledtanh().beta()); break;
    case proto::ActivationParams::kLinear: set(6, p.linear().alpha(), p.linear().beta()); break;
    case proto::ActivationParams::kSigmoidHard: set(7, p.sigmoidhard().alpha(), p.sigmoidhard().beta()); break;
    case proto::ActivationParams::kELU: set(8, p.elu().alpha()); break;
    case proto::ActivationParams::kThresholdedReLU: set(9, p.thresholdedrelu().alpha()); break;
    case proto::ActivationParams::kSoftplus: set(10); break;
    case proto::ActivationParams::kSoftsign: set(12); break;
    default: return fail(ErrorCode::unsupported, "an activation with parameters of each channel");
  }
  net.layers.push_back(std::move(out));
  return {};
}

Status softmax(Network& net, const Fused& fused) {
  json out = layer_object(net, *fused.layer, "softmax", fused.top);
  out["C"] = format::espresso::axis_k;
  net.layers.push_back(std::move(out));
  return {};
}

Status softmax_nd(Network& net, const Fused& fused) {
  json out = layer_object(net, *fused.layer, "softmax_nd", fused.top);
  out["nd_axis"] = fused.layer->softmaxnd().axis();
  net.layers.push_back(std::move(out));
  return {};
}

}  // namespace

std::span<const LayerKind> elementwise_kinds() {
  static constexpr LayerKind list[] = {{Layer::kAdd, sum, 2},      {Layer::kMultiply, product, 2},
                                       {Layer::kMin, minimum, 2},  {Layer::kMax, maximum, 2},
                                       {Layer::kUnary, unary},     {Layer::kActivation, activation},
                                       {Layer::kSoftmax, softmax}, {Layer::kSoftmaxND, softmax_nd}};
  return list;
}

}  // namespace moka::compiler::espresso
