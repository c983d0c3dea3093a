// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "linting/bounds.h"

namespace moka::linting {
namespace {

double logistic(double v) { return 1 / (1 + std::exp(-v)); }
double log1p_exp(double v) { return v > 30 ? v : std::log1p(std::exp(v)); }

Interval relu(const Call& c) {
  return rising(c.in("x"), [](double v) { return std::max(v, 0.0); });
}
Interval relu6(const Call& c) {
  return rising(c.in("x"), [](double v) { return std::clamp(v, 0.0, 6.0); });
}
Interval clamped_relu(const Call& c) {
  const double alpha = c.number("alpha", 0), beta = c.number("beta", HUGE_VAL);
  if (alpha < 0) return {};
  return rising(c.in("x"), [&](double v) { return std::min(v < 0 ? alpha * v : v, beta); });
}
Interval leaky_relu(const Call& c) {
  const double alpha = c.number("alpha", 0.01);
  if (alpha < 0) return {};
  return rising(c.in("x"), [&](double v) { return v < 0 ? alpha * v : v; });
}
Interval elu(const Call& c) {
  const double alpha = c.number("alpha", 1);
  return rising(c.in("x"), [&](double v) { return v < 0 ? alpha * std::expm1(v) : v; });
}
Interval sigmoid(const Call& c) { return rising(c.in("x"), logistic); }
Interval tanh(const Call& c) {
  return rising(c.in("x"), [](double v) { return std::tanh(v); });
}
Interval softplus(const Call& c) { return rising(c.in("x"), log1p_exp); }
Interval softsign(const Call& c) {
  return rising(c.in("x"), [](double v) { return std::isinf(v) ? std::copysign(1, v) : v / (1 + std::abs(v)); });
}
Interval sigmoid_hard(const Call& c) {
  const double alpha = c.number("alpha", 0.2), beta = c.number("beta", 0.5);
  return rising(c.in("x"), [&](double v) { return std::clamp(alpha * v + beta, 0.0, 1.0); });
}
/// silu and gelu fall below 0, but to no less than -0.28 and -0.17.
Interval dips(const Call& c) {
  const Interval x = c.in("x");
  return {x.low >= 0 ? 0 : -0.28, std::max(x.high, 0.0)};
}
Interval softmax(const Call&) { return {0, 1}; }
Interval linear_activation(const Call& c) {
  return shifted(scaled(c.in("x"), c.number("alpha", 1)), c.number("beta", 0));
}
Interval scaled_tanh(const Call& c) {
  const double size = std::abs(c.number("alpha", 1));
  return {-size, size};
}

}  // namespace

const Transfers& activation_transfers() {
  static const Transfers all{{"relu", relu},
                             {"relu6", relu6},
                             {"clamped_relu", clamped_relu},
                             {"leaky_relu", leaky_relu},
                             {"elu", elu},
                             {"sigmoid", sigmoid},
                             {"tanh", tanh},
                             {"softplus", softplus},
                             {"softsign", softsign},
                             {"sigmoid_hard", sigmoid_hard},
                             {"silu", dips},
                             {"gelu", dips},
                             {"softmax", softmax},
                             {"linear_activation", linear_activation},
                             {"scaled_tanh", scaled_tanh}};
  return all;
}

}  // namespace moka::linting
