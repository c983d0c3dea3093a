// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

Name number(Call& c, const char* param) { return c.scalar(c.dtype("x"), c.number(param)); }

void relu6(Call& c) {
  const DType t = c.dtype("x");
  c.set(c.node("Clip", {c.x(), c.scalar(t, 0), c.scalar(t, 6)}));
}

void silu(Call& c) { c.set(c.node("Mul", {c.x(), c.node("Sigmoid", {c.x()})})); }
void leaky_relu(Call& c) { c.set(c.node("LeakyRelu", {c.x()}, {attr("alpha", c.number("alpha"))})); }
void elu(Call& c) { c.set(c.node("Elu", {c.x()}, {attr("alpha", c.number("alpha"))})); }

void sigmoid_hard(Call& c) {
  const double alpha = c.number("alpha"), beta = c.number("beta");
  c.set(c.node("HardSigmoid", {c.x()}, {attr("alpha", alpha), attr("beta", beta)}));
}

void scaled_tanh(Call& c) {
  const Name inner = c.node("Tanh", {c.node("Mul", {c.x(), number(c, "beta")})});
  c.set(c.node("Mul", {inner, number(c, "alpha")}));
}

void linear_activation(Call& c) {
  Name y = c.x();
  if (c.number("alpha") != 1) y = c.node("Mul", {y, number(c, "alpha")});
  c.set(c.number("beta") == 0 && y != c.x() ? y : c.node("Add", {y, number(c, "beta")}));
}

void clamped_relu(Call& c) {
  const Name y = c.node("LeakyRelu", {c.x()}, {attr("alpha", c.number("alpha"))});
  c.set(c.node("Min", {y, number(c, "beta")}));
}

/// ThresholdedRelu differs at x == alpha.
void thresholded_relu(Call& c) {
  const DType t = c.dtype("x");
  c.set(c.node("Where", {c.node("Less", {c.x(), number(c, "alpha")}), c.scalar(t, 0), c.x()}));
}

/// A vector with one entry per channel, for x [N, C, ...].
Name per_channel(Call& c, const char* param) {
  const auto t = c.constant(param);
  const int rank = c.rank("x");
  if (!t || c.refused()) return c.refuse(cat(param, " is not a constant")), Name();
  ir::Shape s{t->count()};
  for (int i = 2; i < rank && t->count() != 1; i++) s.push_back(1);
  return c.graph.tensor(c.converted(*t, c.dtype("x")).reshaped(s));
}

void prelu(Call& c) { c.set(c.node("PRelu", {c.x(), per_channel(c, "alpha")})); }

void softplus_parametric(Call& c) {
  const Name inner = c.node("Softplus", {c.node("Mul", {c.x(), per_channel(c, "beta")})});
  c.set(c.node("Mul", {inner, per_channel(c, "alpha")}));
}

/// 0.5 x (1 + f), where f is in (-1, 1).
Name half_gate(Call& c, const Name& f) {
  const DType t = c.dtype("x");
  const Name gate = c.node("Add", {f, c.scalar(t, 1)});
  return c.node("Mul", {c.node("Mul", {c.x(), c.scalar(t, 0.5)}), gate});
}

void gelu(Call& c) {
  constexpr int with_gelu = 20;
  const DType t = c.dtype("x");
  const std::string mode = c.text("mode");
  if (mode == "SIGMOID_APPROXIMATION") {
    const Name gate = c.node("Sigmoid", {c.node("Mul", {c.x(), c.scalar(t, 1.702)})});
    return c.set(c.node("Mul", {c.x(), gate}));
  }
  if (c.wants(with_gelu)) {
    if (mode == "EXACT") return c.set(c.node("Gelu", {c.x()}));
    return c.set(c.node("Gelu", {c.x()}, {attr("approximate", "tanh")}));
  }
  if (mode == "EXACT") {
    return c.set(half_gate(c, c.node("Erf", {c.node("Mul", {c.x(), c.scalar(t, std::sqrt(0.5))})})));
  }
  const Name cube = c.node("Mul", {c.node("Mul", {c.x(), c.x()}), c.x()});
  const Name sum = c.node("Add", {c.x(), c.node("Mul", {cube, c.scalar(t, 0.044715)})});
  c.set(half_gate(c, c.node("Tanh", {c.node("Mul", {sum, c.scalar(t, std::sqrt(2 / M_PI))})})));
}

void softmax(Call& c) { c.set(c.node("Softmax", {c.x()}, {attr("axis", c.integer("axis"))})); }

}  // namespace

std::span<const OpWriter> writers_activation();
std::span<const OpWriter> writers_activation() {
  static constexpr OpWriter list[] = {
      {"relu6", relu6},
      {"silu", silu},
      {"leaky_relu", leaky_relu},
      {"elu", elu},
      {"sigmoid_hard", sigmoid_hard},
      {"scaled_tanh", scaled_tanh},
      {"linear_activation", linear_activation},
      {"clamped_relu", clamped_relu},
      {"thresholded_relu", thresholded_relu},
      {"prelu", prelu},
      {"softplus_parametric", softplus_parametric},
      {"gelu", gelu},
      {"softmax", softmax},
  };
  return list;
}

}  // namespace moka::compiler::onnx
