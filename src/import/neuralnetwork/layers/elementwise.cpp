// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

/// All inputs in one form, and the index of the input that gives the result its leading dimensions.
struct Operands {
  Form form = Form::exact;
  std::vector<Value*> values;
};

Result<Operands> operands(Layer& l) {
  Operands o;
  o.form = MOKA_TRY(l.common_form());
  for (int i = 0; i < l.inputs(); i++) o.values.push_back(MOKA_TRY(l.in(i, o.form)));
  return o;
}

/// x1 op x2 op ...
Result<Value*> chain(Layer& l, std::string_view op, const std::vector<Value*>& values) {
  Value* y = values[0];
  for (size_t i = 1; i < values.size(); i++) y = MOKA_TRY(l.op(op, {{"x", y}, {"y", values[i]}}));
  return y;
}

Status many(Layer& l, std::string_view op) {
  MOKA_TRY(l.arity(1, kManyInputs));
  Operands o = MOKA_TRY(operands(l));
  return l.set(0, MOKA_TRY(chain(l, op, o.values)), o.form);
}

/// With a single input, the other operand is a number of the layer.
Status many_or_scalar(Layer& l, std::string_view op, float alpha) {
  if (l.inputs() != 1) return many(l, op);
  MOKA_TRY(l.arity(1, 1));
  Form form = MOKA_TRY(l.cheap_form(0));
  return l.set(0, MOKA_TRY(l.op(op, {{"x", MOKA_TRY(l.in(0, form))}, {"y", alpha}})), form);
}

Status add_inputs(Layer& l) { return many_or_scalar(l, "add", l.p.add().alpha()); }
Status multiply_inputs(Layer& l) { return many_or_scalar(l, "mul", l.p.multiply().alpha()); }
Status maximum_inputs(Layer& l) { return many(l, "maximum"); }
Status minimum_inputs(Layer& l) { return many(l, "minimum"); }

Status average(Layer& l) {
  MOKA_TRY(l.arity(1, kManyInputs));
  Operands o = MOKA_TRY(operands(l));
  Value* sum = MOKA_TRY(chain(l, "add", o.values));
  return l.set(0, MOKA_TRY(l.op("mul", {{"x", sum}, {"y", 1.0f / static_cast<float>(l.inputs())}})), o.form);
}

Status dot(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  Value* a = MOKA_TRY(l.in(0, Form::matrix));
  Value* b = MOKA_TRY(l.in(1, Form::matrix));
  auto sum = [&](Value* v) { return l.op("reduce_sum", {{"x", v}, {"axes", Ints{1}}, {"keep_dims", true}}); };
  Value* y = MOKA_TRY(sum(MOKA_TRY(l.op("mul", {{"x", a}, {"y", b}}))));
  if (l.p.dot().cosinesimilarity()) {
    auto length = [&](Value* v) { return l.op("reduce_l2_norm", {{"x", v}, {"axes", Ints{1}}, {"keep_dims", true}}); };
    Value* of_a = MOKA_TRY(length(a));
    Value* of_b = MOKA_TRY(length(b));
    Value* lengths = MOKA_TRY(l.op("mul", {{"x", of_a}, {"y", of_b}}));
    y = MOKA_TRY(l.op("real_div", {{"x", y}, {"y", lengths}}));
  }
  return l.set(0, y, Form::matrix);
}

/// [1], [C], [1, H, W] or [C, H, W] as a weight that broadcasts to nchw.
Result<Value*> channel_weight(Layer& l, const google::protobuf::RepeatedField<uint64_t>& dims,
                              const proto::WeightParams& w, std::string_view what) {
  Shape s;
  if (dims.size() == 1) {
    s = MOKA_TRY(l.shape({1, dims[0], 1, 1}, what));
  } else if (dims.size() == 3) {
    s = MOKA_TRY(l.shape({1, dims[0], dims[1], dims[2]}, what));
  } else if (dims.size() == 4 && dims[0] == 1) {
    s = MOKA_TRY(l.shape({1, dims[1], dims[2], dims[3]}, what));
  } else {
    return l.malformed(cat(what, ": expected a shape of 1 or 3 dimensions, got ", dims.size()));
  }
  return l.weight(w, s, what, 1);
}

Status scale(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.scale();
  Value* y = MOKA_TRY(l.nchw(0));
  Value* factor = MOKA_TRY(channel_weight(l, p.shapescale(), p.scale(), "scale"));
  y = MOKA_TRY(l.op("mul", {{"x", y}, {"y", factor}}));
  if (p.hasbias()) {
    Value* bias = MOKA_TRY(channel_weight(l, p.shapebias(), p.bias(), "bias"));
    y = MOKA_TRY(l.op("add", {{"x", y}, {"y", bias}}));
  }
  return l.set(0, y, Form::nchw);
}

Status bias(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.bias();
  Value* x = MOKA_TRY(l.nchw(0));
  Value* b = MOKA_TRY(channel_weight(l, p.shape(), p.bias(), "bias"));
  return l.set(0, MOKA_TRY(l.op("add", {{"x", x}, {"y", b}})), Form::nchw);
}

Status unary(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.unary();
  Form form = MOKA_TRY(l.cheap_form(0));
  Value* x = MOKA_TRY(l.in(0, form));
  float scale = p.scale() == 0 ? 1.0f : p.scale();
  float epsilon = p.epsilon() == 0 ? 1e-6f : p.epsilon();
  if (scale != 1) x = MOKA_TRY(l.op("mul", {{"x", x}, {"y", scale}}));
  if (p.shift() != 0) x = MOKA_TRY(l.op("add", {{"x", x}, {"y", p.shift()}}));
  Value* y;
  switch (p.type()) {
    case proto::UnaryFunctionLayerParams::SQRT: y = MOKA_TRY(l.op("sqrt", {{"x", x}})); break;
    case proto::UnaryFunctionLayerParams::RSQRT: y = MOKA_TRY(l.op("rsqrt", {{"x", x}, {"epsilon", epsilon}})); break;
    case proto::UnaryFunctionLayerParams::INVERSE:
      y = MOKA_TRY(l.op("inverse", {{"x", x}, {"epsilon", epsilon}}));
      break;
    case proto::UnaryFunctionLayerParams::POWER: y = MOKA_TRY(l.op("pow", {{"x", x}, {"y", p.alpha()}})); break;
    case proto::UnaryFunctionLayerParams::EXP: y = MOKA_TRY(l.op("exp", {{"x", x}})); break;
    case proto::UnaryFunctionLayerParams::LOG: y = MOKA_TRY(l.op("log", {{"x", x}, {"epsilon", p.epsilon()}})); break;
    case proto::UnaryFunctionLayerParams::ABS: y = MOKA_TRY(l.op("abs", {{"x", x}})); break;
    case proto::UnaryFunctionLayerParams::THRESHOLD:
      y = MOKA_TRY(l.op("threshold", {{"x", x}, {"alpha", p.alpha()}}));
      break;
    default: return l.malformed(cat("unknown function ", static_cast<int>(p.type())));
  }
  return l.set(0, y, form);
}

}  // namespace

std::span<const LayerImport> layers_elementwise() {
  static const LayerImport list[] = {
      {proto::NeuralNetworkLayer::kAdd, "add", add_inputs},
      {proto::NeuralNetworkLayer::kMultiply, "multiply", multiply_inputs},
      {proto::NeuralNetworkLayer::kAverage, "average", average},
      {proto::NeuralNetworkLayer::kMax, "max", maximum_inputs},
      {proto::NeuralNetworkLayer::kMin, "min", minimum_inputs},
      {proto::NeuralNetworkLayer::kDot, "dot", dot},
      {proto::NeuralNetworkLayer::kScale, "scale", scale},
      {proto::NeuralNetworkLayer::kBias, "bias", bias},
      {proto::NeuralNetworkLayer::kUnary, "unary", unary},
  };
  return list;
}

}  // namespace moka::import::nn
