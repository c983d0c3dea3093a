// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_local_response_norm(const OpCall& call) {
  const Type& x = call.type("x");
  if (x.is_ranked() && x.rank() < 3) return call.error("x", "rank 3 or more", cat("shape ", x.shape()));
  const int64_t size = MOKA_TRY(call.integer("size"));
  if (size < 1) return call.error("size", "1 or more", cat(size));
  for (const char* p : {"alpha", "beta", "k"}) MOKA_TRY(call.number(p));
  return one(x);
}

Status local_response_norm_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const int64_t size = MOKA_TRY(call.integer("size"));
  const double alpha = MOKA_TRY(call.number("alpha")) / static_cast<double>(size);
  const double beta = MOKA_TRY(call.number("beta")), k = MOKA_TRY(call.number("k"));
  const int axis = x.shape.rank() - 3;
  const int64_t outer = x.shape.count(0, axis), channels = x.shape[axis], inner = x.shape.count(axis + 1, axis + 3);
  const int64_t before = std::min(size / 2, channels), after = std::min((size - 1) / 2, channels);
  for (int64_t b = 0; b < outer; b++) {
    for (int64_t c = 0; c < channels; c++) {
      const int64_t from = std::max<int64_t>(0, c - before), to = std::min(channels - 1, c + after);
      for (int64_t i = 0; i < inner; i++) {
        double sum = 0;
        for (int64_t j = from; j <= to; j++) {
          const double v = load_f64(x, (b * channels + j) * inner + i);
          sum += v * v;
        }
        const int64_t at = (b * channels + c) * inner + i;
        store_f64(out[0], at, load_f64(x, at) / std::pow(k + alpha * sum, beta));
      }
    }
  }
  return {};
}

/// Sums over neighboring channels are products with a matrix of zeros and ones.
void local_response_norm_gradient(Gradient& g) {
  const Shape& shape = g.x().shape();
  const int axis = shape.rank() - 3;
  const int64_t channels = shape[axis], size = g.integer("size");
  if (shape.count() == 0) return g.set("x", g.dy());
  const Shape planes{shape.count(0, axis), channels, shape.count(axis + 1, axis + 3)};
  Tensor windows = g.take(Tensor::zeros(g.y().value()->type.dtype(), {channels, channels}));
  for (int64_t c = 0; c < channels && !g.has_failed(); c++)
    for (int64_t k = 0; k < channels; k++)
      if (k >= c - size / 2 && k <= c + (size - 1) / 2) store_f64(windows.view(), c * channels + k, 1);
  const double alpha = g.number("alpha") / static_cast<double>(size), beta = g.number("beta");
  const auto product = [&](bool transposed, Term of) {
    return g.call("matmul", {{"x", windows}, {"y", of.value()}, {"transpose_x", transposed}});
  };
  const auto power = [&](Term base, double exponent) {
    return g.call("pow", {{"x", base.value()}, {"y", g.scalar(exponent)}});
  };
  const Term x = g.reshape(g.x(), planes), dy = g.reshape(g.dy(), planes);
  const Term base = product(false, square(x)) * alpha + g.number("k");
  const Term direct = power(base, -beta) * dy;
  const Term others = product(true, power(base, -beta - 1) * dy * x) * x * (2 * alpha * beta);
  g.set("x", g.reshape(direct - others, shape));
}

}  // namespace

OpDef define_local_response_norm() {
  return OpBuilder("local_response_norm",
                   "x / (k + alpha / size * s)^beta, s the sum of squares over `size` neighboring channels, "
                   "which are the third axis from the end.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("size", kI32)
      .constant("alpha", "T")
      .or_else(Tensor::scalar(DType::fp32, 1e-4))
      .constant("beta", "T")
      .or_else(Tensor::scalar(DType::fp32, 0.75))
      .constant("k", "T")
      .or_else(Tensor::scalar(DType::fp32, 1))
      .infer(infer_local_response_norm)
      .reference(local_response_norm_reference)
      .gradient(local_response_norm_gradient)
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta", "k"});
          })
      .note(
          "Channels are the third axis from the end, at rank 3 the first. The window is [c - size / 2, c + (size - 1) "
          "/ 2], cut off at the ends.",
          "results recorded from Core ML")
      .note("alpha is divided by size even if the window is cut off.",
            "coremltools' definition; torch.nn.LocalResponseNorm")
      .build();
}

}  // namespace moka::ops
