// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/common/channels.h"
#include "ops/common/gradients.h"
#include "ops/common/groups.h"
#include "ops/common/normalization.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

/// The normalized axes; all by default.
Result<Ints> normalized_axes(const OpCall& call, int rank) {
  if (call.has("axes")) return axes_of(call, "axes", rank);
  Ints all;
  for (int i = 0; i < rank; i++) all.push_back(i);
  return all;
}

Result<std::vector<Type>> infer_layer_norm(const OpCall& call) {
  MOKA_TRY(call.number("epsilon"));
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const Ints axes = MOKA_TRY(normalized_axes(call, x.rank()));
  Shape normalized;
  for (int i = 0; i < x.rank(); i++) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end()) normalized.push_back(x.shape()[i]);
  }
  for (const char* name : {"gamma", "beta"}) {
    if (!call.has(name) || !call.type(name).is_ranked()) continue;
    const Shape& s = call.shape(name);
    bool fits = s.rank() == normalized.rank();
    for (int i = 0; fits && i < s.rank(); i++) fits = s[i] == normalized[i] || s[i] < 0 || normalized[i] < 0;
    if (!fits) return call.error(name, cat("the shape of the normalized axes, ", normalized), cat(s));
  }
  return one(x);
}

Status layer_norm_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const TensorView *gamma = call.value("gamma"), *beta = call.value("beta");
  const double epsilon = MOKA_TRY(call.number("epsilon"));
  const Ints axes = MOKA_TRY(normalized_axes(call, x.shape.rank()));
  const Groups groups(x.shape, axes);
  const auto n = static_cast<double>(groups.size());
  groups.each_group([&](int64_t, int64_t first) {
    double sum = 0, squares = 0;
    groups.each_member(first, [&](int64_t i) { sum += load_f64(x, i); });
    const double mean = sum / n;
    groups.each_member(first, [&](int64_t i) {
      const double d = load_f64(x, i) - mean;
      squares += d * d;
    });
    const double scale = 1 / std::sqrt(squares / n + epsilon);
    int64_t m = 0;
    groups.each_member(first, [&](int64_t i) {
      store_f64(out[0], i, (load_f64(x, i) - mean) * scale * channel_value(gamma, m, 1) + channel_value(beta, m, 0));
      m++;
    });
  });
  return {};
}

void layer_norm_gradient(Gradient& g) {
  const Ints axes = g.has("axes") ? g.ints("axes") : all_axes(g.x().rank());
  normalization_gradient(g, axes, axes);
}

}  // namespace

OpDef define_layer_norm() {
  OpBuilder b("layer_norm",
              "gamma * (x - mean) / sqrt(variance + epsilon) + beta over the given axes, all by default.");
  b.type_var("T", kF16F32).in("x", "T").constant("axes", kI32).optional();
  return finish_norm(b, infer_layer_norm, layer_norm_reference)
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"gamma", "beta", "epsilon"});
          })
      .note("The variance is the population's. gamma and beta have the shape of the normalized axes.",
            "coremltools' definition; torch.nn.functional.layer_norm")
      .gradient(layer_norm_gradient)
      .build();
}

}  // namespace moka::ops
