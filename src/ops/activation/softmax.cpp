// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ir/gradient.h"
#include "ops/common/common.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_softmax(const OpCall& call) {
  const Type& x = call.type("x");
  if (x.is_ranked()) {
    MOKA_TRY(axis_of(call, "axis", x.rank()));
  }
  return one(x);
}

void softmax_fp32(const float* x, float* y, int64_t n, int64_t stride) {
  float top = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n; i++) top = x[i * stride] > top ? x[i * stride] : top;
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const float e = std::exp(x[i * stride] - top);
    y[i * stride] = e;
    sum += static_cast<double>(e);
  }
  const double scale = 1 / sum;
  for (int64_t i = 0; i < n; i++) y[i * stride] = static_cast<float>(static_cast<double>(y[i * stride]) * scale);
}

void softmax_any(const TensorView& x, const TensorView& y, int64_t first, int64_t n, int64_t stride) {
  double top = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; i++) top = std::fmax(top, load_f64(x, first + i * stride));
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += std::exp(load_f64(x, first + i * stride) - top);
  for (int64_t i = 0; i < n; i++)
    store_f64(y, first + i * stride, std::exp(load_f64(x, first + i * stride) - top) / sum);
}

Status softmax_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const int rank = x.shape.rank();
  const int axis = MOKA_TRY(axis_of(call, "axis", rank));
  if (x.shape.count() == 0) return {};
  const int64_t outer = x.shape.count(0, axis), n = x.shape[axis], inner = x.shape.count(axis + 1, rank);
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < inner; i++) {
      const int64_t first = o * n * inner + i;
      if (x.dtype == DType::fp32) {
        softmax_fp32(x.as<float>() + first, out[0].as<float>() + first, n, inner);
      } else {
        softmax_any(x, out[0], first, n, inner);
      }
    }
  }
  return {};
}

void softmax_gradient(Gradient& g) {
  const Term product = g.dy() * g.y();
  g.set("x", product - g.y() * g.sum(product, {g.integer("axis")}, true));
}

}  // namespace

OpDef define_softmax() {
  return OpBuilder("softmax", "e^x divided by its sum along an axis.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .infer(infer_softmax)
      .reference(softmax_reference)
      .note("The largest element is subtracted first. A row of only -inf, or with a NaN, is NaN.", "torch.softmax")
      .note("An empty axis gives an empty result.", "NumPy")
      .gradient(softmax_gradient)
      .build();
}

}  // namespace moka::ops
