// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "linting/bounds.h"

/// Products with constant weights: each output is the sum of inputs times weights, so its ends are those of the inputs
/// times the sums of the positive and of the negative weights.
namespace moka::linting {
namespace {

constexpr int64_t kMostWeights = int64_t{1} << 26;

const ir::Tensor* constant(const Call& c, std::string_view parameter) {
  const ir::Value* value = c.op.input(parameter);
  return value != nullptr && value->constant() != nullptr ? &value->constant()->tensor : nullptr;
}

/// `count` consecutive weights `stride` apart for each of `outputs` outputs, and their bias.
Interval weighted(Interval x, const ir::Tensor& weight, int64_t outputs, int64_t between, int64_t stride,
                  const ir::Tensor* bias, bool padded) {
  if (!x.is_bounded() || outputs <= 0 || weight.count() > kMostWeights || weight.count() % outputs != 0) return {};
  const ir::TensorView view = weight.view();
  const int64_t count = weight.count() / outputs;
  if (padded) x = {std::min(x.low, 0.0), std::max(x.high, 0.0), x.grip};
  Interval out{HUGE_VAL, -HUGE_VAL, x.grip == Grip::each ? Grip::reached : Grip::wide};
  for (int64_t o = 0; o < outputs; ++o) {
    double low = 0, high = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double w = ir::load_f64(view, o * between + i * stride);
      low += w * (w > 0 ? x.low : x.high);
      high += w * (w > 0 ? x.high : x.low);
    }
    const double b = bias != nullptr && bias->count() == outputs ? ir::load_f64(bias->view(), o) : 0;
    out.low = std::min(out.low, low + b);
    out.high = std::max(out.high, high + b);
  }
  return out;
}

/// Weights [outputs, ...].
Interval by_rows(const Call& c, bool padded) {
  const ir::Tensor* weight = constant(c, "weight");
  if (weight == nullptr || weight->shape().rank() < 1) return {};
  if (c.op.input("bias") != nullptr && constant(c, "bias") == nullptr) return {};
  const int64_t outputs = weight->shape()[0];
  if (outputs <= 0) return {};
  return weighted(c.in("x"), *weight, outputs, weight->count() / outputs, 1, constant(c, "bias"), padded);
}

Interval conv(const Call& c) { return by_rows(c, true); }
Interval linear(const Call& c) { return by_rows(c, false); }

Interval matmul(const Call& c) {
  const ir::Tensor* y = constant(c, "y");
  if (y == nullptr || y->shape().rank() != 2) return {};
  const bool transposed = c.number("transpose_y", 0) != 0;
  const int64_t rows = y->shape()[0], columns = y->shape()[1];
  if (transposed) return weighted(c.in("x"), *y, rows, columns, 1, nullptr, false);
  return weighted(c.in("x"), *y, columns, 1, columns, nullptr, false);
}

Interval batch_norm(const Call& c) {
  const ir::Tensor *mean = constant(c, "mean"), *variance = constant(c, "variance");
  const ir::Tensor *gamma = constant(c, "gamma"), *beta = constant(c, "beta");
  const Interval x = c.in("x");
  if (mean == nullptr || variance == nullptr || mean->count() != variance->count() || !x.is_bounded()) return {};
  for (const ir::Tensor* other : {gamma, beta})
    if (other != nullptr && other->count() != mean->count()) return {};
  const double epsilon = c.number("epsilon", 1e-5);
  Interval out{HUGE_VAL, -HUGE_VAL, at_most(x, Grip::reached).grip};
  if (x.grip != Grip::each) out.grip = Grip::wide;
  for (int64_t i = 0; i < mean->count(); ++i) {
    const double scale = (gamma != nullptr ? ir::load_f64(gamma->view(), i) : 1) /
                         std::sqrt(ir::load_f64(variance->view(), i) + epsilon);
    const double shift = (beta != nullptr ? ir::load_f64(beta->view(), i) : 0) - ir::load_f64(mean->view(), i) * scale;
    const Interval one = shifted(scaled(x, scale), shift);
    out.low = std::min(out.low, one.low);
    out.high = std::max(out.high, one.high);
  }
  return out;
}

}  // namespace

const Transfers& linear_transfers() {
  static const Transfers all{{"conv", conv}, {"linear", linear}, {"matmul", matmul}, {"batch_norm", batch_norm}};
  return all;
}

}  // namespace moka::linting
