// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

Status function(Layer& l, std::string_view op, std::vector<NamedArg> args = {}) {
  MOKA_TRY(l.arity(1, 1));
  Form form = MOKA_TRY(l.cheap_form(0));
  args.emplace(args.begin(), "x", MOKA_TRY(l.in(0, form)));
  return l.set(0, MOKA_TRY(l.op(op, std::move(args))), form);
}

Status clip(Layer& l) { return function(l, "clip", {{"alpha", l.p.clip().minval()}, {"beta", l.p.clip().maxval()}}); }

Status gelu(Layer& l) {
  switch (l.p.gelu().mode()) {
    case proto::GeluLayerParams::EXACT: return function(l, "gelu", {{"mode", "EXACT"}});
    case proto::GeluLayerParams::TANH_APPROXIMATION: return function(l, "gelu", {{"mode", "TANH_APPROXIMATION"}});
    case proto::GeluLayerParams::SIGMOID_APPROXIMATION: return function(l, "gelu", {{"mode", "SIGMOID_APPROXIMATION"}});
    default: return l.malformed(cat("unknown mode ", static_cast<int>(l.p.gelu().mode())));
  }
}

Status ceil(Layer& l) { return function(l, "ceil"); }
Status floor(Layer& l) { return function(l, "floor"); }
Status sign(Layer& l) { return function(l, "sign"); }
Status round(Layer& l) { return function(l, "round"); }
Status exp2(Layer& l) { return function(l, "exp2"); }
Status sin(Layer& l) { return function(l, "sin"); }
Status cos(Layer& l) { return function(l, "cos"); }
Status tan(Layer& l) { return function(l, "tan"); }
Status asin(Layer& l) { return function(l, "asin"); }
Status acos(Layer& l) { return function(l, "acos"); }
Status atan(Layer& l) { return function(l, "atan"); }
Status sinh(Layer& l) { return function(l, "sinh"); }
Status cosh(Layer& l) { return function(l, "cosh"); }
Status tanh(Layer& l) { return function(l, "tanh"); }
Status asinh(Layer& l) { return function(l, "nn_asinh"); }
Status acosh(Layer& l) { return function(l, "nn_acosh"); }
Status atanh(Layer& l) { return function(l, "atanh"); }
Status erf(Layer& l) { return function(l, "erf"); }

}  // namespace

std::span<const LayerImport> layers_function() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kClip, "clip", clip},    {L::kCeil, "ceil", ceil},    {L::kFloor, "floor", floor},
      {L::kSign, "sign", sign},    {L::kRound, "round", round}, {L::kExp2, "exp2", exp2},
      {L::kSin, "sin", sin},       {L::kCos, "cos", cos},       {L::kTan, "tan", tan},
      {L::kAsin, "asin", asin},    {L::kAcos, "acos", acos},    {L::kAtan, "atan", atan},
      {L::kSinh, "sinh", sinh},    {L::kCosh, "cosh", cosh},    {L::kTanh, "tanh", tanh},
      {L::kAsinh, "asinh", asinh}, {L::kAcosh, "acosh", acosh}, {L::kAtanh, "atanh", atanh},
      {L::kErf, "erf", erf},       {L::kGelu, "gelu", gelu},
  };
  return list;
}

}  // namespace moka::import::nn
