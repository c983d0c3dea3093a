// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

float or_default(float v, float if_zero) { return v == 0 ? if_zero : v; }

/// (x - mean) / sqrt(variance + epsilon) over `axes`.
Result<Value*> normalize(Layer& l, Value* x, const Ints& axes, bool variance, float epsilon) {
  Value* mean = MOKA_TRY(l.op("reduce_mean", {{"x", x}, {"axes", axes}, {"keep_dims", true}}));
  Value* centered = MOKA_TRY(l.op("sub", {{"x", x}, {"y", mean}}));
  if (!variance) return centered;
  Value* square = MOKA_TRY(l.op("square", {{"x", centered}}));
  Value* var = MOKA_TRY(l.op("reduce_mean", {{"x", square}, {"axes", axes}, {"keep_dims", true}}));
  Value* scale = MOKA_TRY(l.op("rsqrt", {{"x", var}, {"epsilon", epsilon}}));
  return l.op("mul", {{"x", centered}, {"y", scale}});
}

Status batchnorm(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.batchnorm();
  Shape shape = MOKA_TRY(l.shape({p.channels()}, "channels"));
  float epsilon = or_default(p.epsilon(), 1e-5f);
  Value* x = MOKA_TRY(l.channels(0));
  if (p.computemeanvar() && !p.instancenormalization()) {
    Shape wide{1, shape[0], 1, 1};
    Value* y = MOKA_TRY(normalize(l, x, Ints{0, 2, 3}, true, epsilon));
    Value* gamma = MOKA_TRY(l.weight(p.gamma(), wide, "gamma", 1));
    y = MOKA_TRY(l.op("mul", {{"x", y}, {"y", gamma}}));
    Value* beta = MOKA_TRY(l.weight(p.beta(), wide, "beta", 1));
    y = MOKA_TRY(l.op("add", {{"x", y}, {"y", beta}}));
    return l.set_channels(0, y);
  }
  std::vector<NamedArg> args{{"x", x}, {"epsilon", epsilon}};
  args.emplace_back("gamma", MOKA_TRY(l.numbers(p.gamma(), shape, "gamma")));
  args.emplace_back("beta", MOKA_TRY(l.numbers(p.beta(), shape, "beta")));
  if (p.computemeanvar()) return l.set_channels(0, MOKA_TRY(l.op("instance_norm", std::move(args))));
  args.emplace_back("mean", MOKA_TRY(l.numbers(p.mean(), shape, "mean")));
  args.emplace_back("variance", MOKA_TRY(l.numbers(p.variance(), shape, "variance")));
  return l.set_channels(0, MOKA_TRY(l.op("batch_norm", std::move(args))));
}

Status mvn(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.mvn();
  Value* x = MOKA_TRY(l.nchw(0));
  Ints axes = p.acrosschannels() ? Ints{1, 2, 3} : Ints{2, 3};
  return l.set(0, MOKA_TRY(normalize(l, x, axes, p.normalizevariance(), or_default(p.epsilon(), 1e-6f))), Form::nchw);
}

Status l2normalize(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Value* x = MOKA_TRY(l.nchw(0));
  return l.set(0, MOKA_TRY(l.op("l2_norm", {{"x", x}, {"epsilon", or_default(l.p.l2normalize().epsilon(), 1e-6f)}})),
               Form::nchw);
}

/// Softmax over the channels, which are the last dimension of a blob of rank 1 or 2.
Status softmax(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  if (MOKA_TRY(l.blob(0))->rank() < 3)
    return l.set(0, MOKA_TRY(l.op("softmax", {{"x", MOKA_TRY(l.in(0))}, {"axis", -1}})));
  Form form = MOKA_TRY(l.cheap_form(0));
  if (form == Form::exact) form = Form::nchw;
  Value* x = MOKA_TRY(l.in(0, form));
  return l.set(0, MOKA_TRY(l.op("softmax", {{"x", x}, {"axis", 1}})), form);
}

Status softmax_nd(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Value* x = MOKA_TRY(l.any(0));
  const int axis = MOKA_TRY(l.axis(l.p.softmaxnd().axis(), x));
  return l.set(0, MOKA_TRY(l.op("softmax", {{"x", x}, {"axis", axis}})));
}

Status lrn(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.lrn();
  if (p.localsize() == 0 || p.localsize() > (uint64_t{1} << 31) - 1)
    return l.malformed(cat("localSize ", p.localsize()));
  Value* x = MOKA_TRY(l.nchw(0));
  return l.set(0,
               MOKA_TRY(l.op("local_response_norm", {{"x", x},
                                                     {"size", static_cast<int>(p.localsize())},
                                                     {"alpha", p.alpha()},
                                                     {"beta", p.beta()},
                                                     {"k", or_default(p.k(), 1.0f)}})),
               Form::nchw);
}

Status layer_normalization(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.layernormalization();
  Value* x = MOKA_TRY(l.any(0));
  int n = p.normalizedshape_size();
  if (n == 0 || n > ir::kMaxRank || (x->type.is_ranked() && n > x->type.rank()))
    return l.malformed(cat("a normalized shape of rank ", n, " for an input of rank ", x->type.rank()));
  Shape shape;
  Ints axes;
  for (int i = 0; i < n; i++) {
    if (p.normalizedshape(i) < 1) return l.malformed(cat("a normalized dimension of ", p.normalizedshape(i)));
    shape.push_back(p.normalizedshape(i));
    axes.push_back(i - n);
  }
  MOKA_TRY(shape.checked_count());
  std::vector<NamedArg> args{{"x", x}, {"axes", axes}, {"epsilon", or_default(p.eps(), 1e-5f)}};
  args.emplace_back("gamma", MOKA_TRY(l.numbers(p.gamma(), shape, "gamma")));
  args.emplace_back("beta", MOKA_TRY(l.numbers(p.beta(), shape, "beta")));
  return l.set(0, MOKA_TRY(l.op("layer_norm", std::move(args))));
}

}  // namespace

std::span<const LayerImport> layers_normalization() {
  static const LayerImport list[] = {
      {proto::NeuralNetworkLayer::kBatchnorm, "batchnorm", batchnorm},
      {proto::NeuralNetworkLayer::kMvn, "mvn", mvn},
      {proto::NeuralNetworkLayer::kL2Normalize, "l2normalize", l2normalize},
      {proto::NeuralNetworkLayer::kSoftmax, "softmax", softmax},
      {proto::NeuralNetworkLayer::kSoftmaxND, "softmaxND", softmax_nd},
      {proto::NeuralNetworkLayer::kLrn, "lrn", lrn},
      {proto::NeuralNetworkLayer::kLayerNormalization, "layerNormalization", layer_normalization},
  };
  return list;
}

}  // namespace moka::import::nn
