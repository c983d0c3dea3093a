// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

void relu(Node& n) {
  Value* x = n.in(0);
  n.set(0, is_float(n.type()) ? n.unary("relu", x) : n.binary("maximum", x, n.scalar(0, x)));
}

void leaky_relu(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.op("leaky_relu", {{"x", x}, n.arg("alpha", n.number_or("alpha", 0.01f), x)}));
}

Value* elu_of(const Node& n, Value* x, double alpha) { return n.op("elu", {{"x", x}, n.arg("alpha", alpha, x)}); }

void elu(Node& n) { n.set(0, elu_of(n, n.in(0), n.number_or("alpha", 1))); }

void celu(Node& n) {
  Value* x = n.in(0);
  const double alpha = n.number_or("alpha", 1);
  // max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
  Value* low = n.mul(n.add(n.unary("exp", n.mul(x, 1 / alpha)), -1), alpha);
  n.set(0, n.add(n.unary("relu", x), n.binary("minimum", low, n.scalar(0, x))));
}

void selu(Node& n) {
  Value* x = n.in(0);
  const double alpha = n.number_or("alpha", 1.67326319217681884765625f);
  n.set(0, n.mul(elu_of(n, x, alpha), n.number_or("gamma", 1.05070102214813232421875f)));
}

void prelu(Node& n) {
  Value *x = n.in(0), *slope = n.in(1);
  const Tensor* t = n.constant(1);
  const bool floats = is_float(n.type());
  const Shape* s = t != nullptr ? &t->shape() : nullptr;
  const int r = n.rank(x);
  // [C, 1, ...] beside an input [N, C, ...] is what MIL's prelu has.
  bool channels = floats && s != nullptr && r >= 3 && r <= 5 && s->rank() == r - 1 && (*s)[0] == x->type.shape()[1];
  for (int i = 1; channels && i < s->rank(); ++i) channels = (*s)[i] == 1;
  if (channels && t->dtype() == x->type.dtype())
    return n.set(0, n.op("prelu", {{"x", x}, {"alpha", t->reshaped(Shape{(*s)[0]})}}));
  // Before opset 7 the slopes are those of the channels.
  if (n.opset < 7 && n.rank(slope) == 1 && r > 1 && slope->type.shape()[0] != 1) {
    std::vector<int64_t> dims(static_cast<size_t>(r), 1);
    dims[1] = -1;
    slope = n.reshape(slope, dims);
  }
  Value* zero = n.scalar(0, x);
  n.set(0, n.select(n.binary("less", x, zero), n.mul(x, slope), n.unary("identity", x)));
}

void hard_sigmoid(Node& n) {
  Value* x = n.in(0);
  n.set(0,
        n.op("sigmoid_hard",
             {{"x", x}, n.arg("alpha", n.number_or("alpha", 0.2f), x), n.arg("beta", n.number_or("beta", 0.5f), x)}));
}

void hard_swish(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.mul(x, n.op("sigmoid_hard", {{"x", x}, n.arg("alpha", 1.0 / 6, x), n.arg("beta", 0.5, x)})));
}

void thresholded_relu(Node& n) {
  Value* x = n.in(0);
  // Core ML's keeps x = alpha.
  Value* above = n.binary("greater", x, n.scalar(n.number_or("alpha", 1), x));
  n.set(0, n.select(above, x, n.scalar(0, x)));
}

void gelu(Node& n) {
  const bool tanh = n.text_or("approximate", "none") == "tanh";
  n.set(0, n.op("gelu", {{"x", n.in(0)}, {"mode", tanh ? "TANH_APPROXIMATION" : "EXACT"}}));
}

void swish(Node& n) {
  Value* x = n.in(0);
  const double alpha = n.number_or("alpha", 1);
  n.set(0, alpha == 1 ? n.unary("silu", x) : n.mul(x, n.unary("sigmoid", n.mul(x, alpha))));
}

void mish(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.mul(x, n.unary("tanh", n.unary("softplus", x))));
}

void shrink(Node& n) {
  Value* x = n.in(0);
  const double bias = n.number_or("bias", 0), lambd = n.number_or("lambd", 0.5f);
  Value* v = n.cast(x, x->type.dtype() == DType::int32 ? DType::fp32 : x->type.dtype());
  Value* zero = n.scalar(0, v);
  Value* low = n.select(n.binary("less", v, n.scalar(-lambd, v)), n.add(v, bias), zero);
  Value* out = n.select(n.binary("greater", v, n.scalar(lambd, v)), n.add(v, -bias), low);
  n.set(0, n.cast(out, x->type.dtype()));
}

/// The softmax of MIL over one axis; before opset 13 over all axes from `axis` on.
Value* over_axes(Node& n, Value* (*apply)(const Node&, Value*, int)) {
  Value* x = n.in(0);
  const int r = n.rank(x);
  const int64_t axis = n.axis(n.integer_or("axis", n.opset < 13 ? 1 : -1), x);
  if (n.opset >= 13 || axis == r - 1) return apply(n, x, static_cast<int>(axis));
  const Shape& s = n.known_shape(x, "softmax over several axes");
  const std::vector<int64_t> dims = s.to_vector();
  Value* flat = n.reshape(x, {s.count(0, static_cast<int>(axis)), s.count(static_cast<int>(axis), r)});
  return n.reshape(apply(n, flat, 1), dims);
}

Value* softmax_of(const Node& n, Value* x, int axis) { return n.op("softmax", {{"x", x}, {"axis", axis}}); }

Value* log_softmax_of(const Node& n, Value* x, int axis) {
  Value* shifted = n.sub(x, n.reduce("reduce_max", x, {axis}, true));
  return n.sub(shifted, n.reduce("reduce_log_sum_exp", shifted, {axis}, true));
}

Value* hardmax_of(const Node& n, Value* x, int axis) {
  const int64_t count = n.known_shape(x, "Hardmax")[axis];
  Value* best = n.op("reduce_argmax", {{"x", x}, {"axis", axis}, {"keep_dims", false}});
  return n.op("one_hot", {{"indices", best},
                          {"one_hot_vector_size", static_cast<int>(count)},
                          {"axis", axis},
                          n.arg("on_value", 1, x),
                          n.arg("off_value", 0, x)});
}

constexpr OperatorImport kActivationOperators[] = {
    {"Relu", relu},
    {"LeakyRelu", leaky_relu},
    {"Elu", elu},
    {"Celu", celu},
    {"Selu", selu},
    {"PRelu", prelu},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish},
    {"ThresholdedRelu", thresholded_relu},
    {"Gelu", gelu},
    {"Gelu", gelu, "com.microsoft"},
    {"Swish", swish},
    {"Mish", mish},
    {"Shrink", shrink},
    {"Sigmoid", [](Node& n) { n.set(0, n.unary("sigmoid", n.in(0))); }},
    {"Tanh", [](Node& n) { n.set(0, n.unary("tanh", n.in(0))); }},
    {"Softplus", [](Node& n) { n.set(0, n.unary("softplus", n.in(0))); }},
    {"Softsign", [](Node& n) { n.set(0, n.unary("softsign", n.in(0))); }},
    {"Softmax", [](Node& n) { n.set(0, over_axes(n, softmax_of)); }},
    {"LogSoftmax", [](Node& n) { n.set(0, over_axes(n, log_softmax_of)); }},
    {"Hardmax", [](Node& n) { n.set(0, over_axes(n, hardmax_of)); }},
};

}  // namespace

std::span<const OperatorImport> operators_activation() { return kActivationOperators; }

}  // namespace moka::import::onnx
