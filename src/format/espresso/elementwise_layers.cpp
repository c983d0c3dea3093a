// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "format/espresso/layer_reader.h"

namespace moka::format::espresso {
namespace {

/// y = x * sigmoid(x), or with the hard sigmoid of alpha and beta.
Status gated(LayerReader& r, bool hard) {
  const std::string gate = r.new_blob(cat(r.name, "_gate"));
  proto::ActivationParams& p = *r.add(r.new_layer(cat(r.name, "_gate")), r.bottoms, {gate}).mutable_activation();
  if (hard) {
    p.mutable_sigmoidhard()->set_alpha(1.0f / 6);
    p.mutable_sigmoidhard()->set_beta(0.5f);
  } else {
    p.mutable_sigmoid();
  }
  r.add(r.name, {r.bottoms[0], gate}, r.tops).mutable_multiply()->set_alpha(1);
  return {};
}

Status selu(LayerReader& r) {
  const std::string between = r.new_blob(cat(r.name, "_elu"));
  r.add(r.new_layer(cat(r.name, "_elu")), r.bottoms, {between})
      .mutable_activation()
      ->mutable_elu()
      ->set_alpha(1.67326324f);
  r.add(r.name, {between}, r.tops).mutable_activation()->mutable_linear()->set_alpha(1.05070098f);
  return {};
}

Status gelu(LayerReader& r, proto::GeluLayerParams::GeluMode mode) {
  r.add().mutable_gelu()->set_mode(mode);
  return {};
}

Status activation(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  const float alpha = MOKA_TRY(r.number("alpha", 1)), beta = MOKA_TRY(r.number("beta", 0));
  const int64_t mode = MOKA_TRY(r.integer("mode", 0));
  switch (mode) {
    case 16: return selu(r);
    case 19: return gelu(r, proto::GeluLayerParams::EXACT);
    case 20: r.add().mutable_erf(); return {};
    case 21: return gelu(r, proto::GeluLayerParams::TANH_APPROXIMATION);
    case 22: return gelu(r, proto::GeluLayerParams::SIGMOID_APPROXIMATION);
    case 25: return gated(r, false);
    case 26: return gated(r, true);
    case 13: {
      auto& p = *r.add().mutable_unary();
      p.set_type(proto::UnaryFunctionLayerParams::THRESHOLD);
      p.set_alpha(alpha);
      p.set_scale(1);
      return {};
    }
    default: break;
  }
  proto::ActivationParams p;
  switch (mode) {
    case 0: p.mutable_relu(); break;
    case 1: p.mutable_tanh(); break;
    case 2: p.mutable_leakyrelu()->set_alpha(alpha); break;
    case 3: p.mutable_sigmoid(); break;
    case 5:
      p.mutable_scaledtanh()->set_alpha(alpha);
      p.mutable_scaledtanh()->set_beta(beta);
      break;
    case 6:
      p.mutable_linear()->set_alpha(alpha);
      p.mutable_linear()->set_beta(beta);
      break;
    case 7:
      p.mutable_sigmoidhard()->set_alpha(alpha);
      p.mutable_sigmoidhard()->set_beta(beta);
      break;
    case 8: p.mutable_elu()->set_alpha(alpha); break;
    case 9: p.mutable_thresholdedrelu()->set_alpha(alpha); break;
    case 10: p.mutable_softplus(); break;
    case 12: p.mutable_softsign(); break;
    default: return r.unsupported(cat("mode ", mode));
  }
  if (mode == 2 && !r.has("alpha")) return r.unsupported("a slope for each channel");
  *r.add().mutable_activation() = std::move(p);
  return {};
}

using Unary = proto::UnaryFunctionLayerParams;

Status unary(LayerReader& r, Unary::Operation type, float alpha = 0) {
  proto::NeuralNetworkLayer* layer = MOKA_TRY(r.add_fused("fused_relu", nullptr));
  Unary& p = *layer->mutable_unary();
  p.set_type(type);
  p.set_alpha(alpha);
  p.set_epsilon(MOKA_TRY(r.number("eps", type == Unary::RSQRT || type == Unary::INVERSE ? 1e-6f : 0)));
  p.set_scale(1);
  return {};
}

/// Operations on one blob and a number.
Status with_number(LayerReader& r, int64_t operation) {
  const float alpha = MOKA_TRY(r.number("alpha", 1)), beta = MOKA_TRY(r.number("beta", 0));
  auto linear = [&](float scale, float bias) -> Status {
    proto::NeuralNetworkLayer* layer = MOKA_TRY(r.add_fused("fused_relu", nullptr));
    layer->mutable_activation()->mutable_linear()->set_alpha(scale);
    layer->mutable_activation()->mutable_linear()->set_beta(bias);
    return {};
  };
  switch (operation) {
    case 0:
    case 1: {
      proto::NeuralNetworkLayer* layer = MOKA_TRY(r.add_fused("fused_relu", nullptr));
      if (operation == 0)
        layer->mutable_add()->set_alpha(alpha);
      else
        layer->mutable_multiply()->set_alpha(alpha);
      return {};
    }
    case 2:
    case 4:
    case 29: return linear(1, alpha);
    case 10:
      if (alpha != 1) return r.unsupported(cat("alpha ", alpha, " over the input"));
      return unary(r, Unary::INVERSE);
    case 11: return unary(r, Unary::SQRT);
    case 12: return unary(r, Unary::RSQRT);
    case 13: return unary(r, Unary::POWER, alpha);
    case 24: return unary(r, Unary::ABS);
    case 25: return unary(r, Unary::THRESHOLD, alpha);
    case 26: return unary(r, Unary::LOG);
    case 27: return unary(r, Unary::EXP);
    case 119: {
      auto& p = *r.add().mutable_clip();
      p.set_minval(alpha);
      p.set_maxval(beta);
      return {};
    }
    default: break;
  }
  static constexpr std::pair<int, void (*)(proto::NeuralNetworkLayer&)> functions[] = {
      {35, [](auto& l) { l.mutable_exp2(); }},   {37, [](auto& l) { l.mutable_round(); }},
      {38, [](auto& l) { l.mutable_sign(); }},   {114, [](auto& l) { l.mutable_cos(); }},
      {115, [](auto& l) { l.mutable_sin(); }},   {117, [](auto& l) { l.mutable_floor(); }},
      {118, [](auto& l) { l.mutable_ceil(); }},  {121, [](auto& l) { l.mutable_tan(); }},
      {122, [](auto& l) { l.mutable_cosh(); }},  {123, [](auto& l) { l.mutable_sinh(); }},
      {124, [](auto& l) { l.mutable_tanh(); }},  {125, [](auto& l) { l.mutable_acos(); }},
      {126, [](auto& l) { l.mutable_asin(); }},  {127, [](auto& l) { l.mutable_atan(); }},
      {128, [](auto& l) { l.mutable_acosh(); }}, {129, [](auto& l) { l.mutable_asinh(); }},
      {130, [](auto& l) { l.mutable_atanh(); }},
  };
  for (const auto& [code, set] : functions)
    if (code == operation) {
      set(*MOKA_TRY(r.add_fused("fused_relu", nullptr)));
      return {};
    }
  return r.unsupported(cat("operation ", operation, " of one blob"));
}

/// Layers for arrays of any rank, which broadcast, and those for blobs with the five legacy axes.
Status between(LayerReader& r, int64_t operation) {
  const bool nd = r.nd_rank(r.bottoms[0]) != 0 || r.nd_rank(r.bottoms[1]) != 0;
  proto::NeuralNetworkLayer& layer = *MOKA_TRY(r.add_fused("fused_relu", nullptr));
  switch (operation) {
    case 0:
      if (nd)
        layer.mutable_addbroadcastable();
      else
        layer.mutable_add();
      return {};
    case 1:
      if (nd)
        layer.mutable_multiplybroadcastable();
      else
        layer.mutable_multiply()->set_alpha(1);
      return {};
    case 22:
      if (nd)
        layer.mutable_minbroadcastable();
      else
        layer.mutable_min();
      return {};
    case 23:
      if (nd)
        layer.mutable_maxbroadcastable();
      else
        layer.mutable_max();
      return {};
    case 13: layer.mutable_powbroadcastable(); return {};
    case 33: layer.mutable_subtractbroadcastable(); return {};
    case 36: layer.mutable_modbroadcastable(); return {};
    case 100: layer.mutable_equal(); return {};
    case 102: layer.mutable_dividebroadcastable(); return {};
    case 103: layer.mutable_lessthan(); return {};
    case 104: layer.mutable_lessequal(); return {};
    case 105: layer.mutable_greaterthan(); return {};
    case 106: layer.mutable_greaterequal(); return {};
    case 107: layer.mutable_notequal(); return {};
    case 1021: layer.mutable_floordivbroadcastable(); return {};
    default: return r.unsupported(cat("operation ", operation, " of two blobs"));
  }
}

Status elementwise(LayerReader& r) {
  const int64_t operation = MOKA_TRY(r.integer("operation", 0));
  if (r.bottoms.size() == 1) {
    MOKA_TRY(r.arity(1, 1));
    return with_number(r, operation);
  }
  if (r.bottoms.size() == 2) {
    MOKA_TRY(r.arity(2, 2));
    return between(r, operation);
  }
  if (r.bottoms.size() == 3 && operation == 101) {
    MOKA_TRY(r.arity(3, 3));
    r.add().mutable_wherebroadcastable();
    return {};
  }
  MOKA_TRY(r.arity(1, std::numeric_limits<int>::max()));
  proto::NeuralNetworkLayer& layer = *MOKA_TRY(r.add_fused("fused_relu", nullptr));
  switch (operation) {
    case 0: layer.mutable_add(); return {};
    case 1: layer.mutable_multiply()->set_alpha(1); return {};
    case 22: layer.mutable_min(); return {};
    case 23: layer.mutable_max(); return {};
    default: return r.unsupported(cat("operation ", operation, " of ", r.bottoms.size(), " blobs"));
  }
}

Status softmax(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  if (r.type == "softmax_nd") {
    r.add().mutable_softmaxnd()->set_axis(MOKA_TRY(r.integer("nd_axis", -1)));
    return {};
  }
  const int64_t axis = MOKA_TRY(r.integer("C", axis_k));
  if (axis != axis_k) return r.unsupported(cat("a softmax over axis ", axis, "; 2, the channels, is known"));
  r.add().mutable_softmax();
  return {};
}

}  // namespace

std::span<const LayerType> elementwise_layers() {
  static constexpr LayerType list[] = {
      {"activation", activation}, {"elementwise", elementwise}, {"softmax", softmax}, {"softmax_nd", softmax}};
  return list;
}

}  // namespace moka::format::espresso
