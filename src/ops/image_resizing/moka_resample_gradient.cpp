// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/recurrent.h"
#include "ops/common/resampling.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_resample_gradient(const OpCall& call) {
  MOKA_TRY(resample_settings_of(call));
  const Type &x = call.type("x"), &coordinates = call.type("coordinates");
  if (any_unranked(call, {"x", "coordinates", "dy"})) return std::vector<Type>{x, coordinates};
  if (x.rank() != 4) return call.error("x", "rank 4", cat(x.shape()));
  const Shape& at = coordinates.shape();
  if (at.rank() != 4) return call.error("coordinates", cat("shape [", x.shape()[0], ", height, width, 2]"), cat(at));
  MOKA_TRY(check_shape(call, "coordinates", {x.shape()[0], at[1], at[2], 2}));
  MOKA_TRY(check_shape(call, "dy", {x.shape()[0], x.shape()[1], at[1], at[2]}));
  return std::vector<Type>{x, coordinates};
}

/// The position of one sample, and what its gradient adds up to.
struct Sample {
  double px, py;
  int64_t width, height;
  double dx = 0, dy = 0;  // of the position

  int64_t place(double y, double x) const {
    const bool is_inside = x >= 0 && y >= 0 && x < static_cast<double>(width) && y < static_cast<double>(height);
    return is_inside ? static_cast<int64_t>(y) * width + static_cast<int64_t>(x) : -1;
  }
  void nearest(double d, double* sums) const {
    const int64_t at = place(std::nearbyint(py), std::nearbyint(px));
    if (at >= 0) sums[at] += d;
  }
  template <class Read>
  void bilinear(double d, double pad, const Read& read, double* sums);
};

template <class Read>
void Sample::bilinear(double d, double pad, const Read& read, double* sums) {
  if (!(px > -1 && py > -1 && px < static_cast<double>(width) && py < static_cast<double>(height))) return;
  const double left = std::floor(px), top = std::floor(py), ax = px - left, ay = py - top;
  for (int i = 0; i < 4; ++i) {
    const int right = i % 2, below = i / 2;
    const double across = right != 0 ? ax : 1 - ax, down = below != 0 ? ay : 1 - ay;
    const int64_t at = place(top + below, left + right);
    if (at >= 0) sums[at] += d * across * down;
    const double value = d * (at >= 0 ? read(at) : pad);
    dx += (right != 0 ? value : -value) * down;
    dy += (below != 0 ? value : -value) * across;
  }
}

Status resample_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const ResampleSettings s = MOKA_TRY(resample_settings_of(call));
  const TensorView &x = call.in("x"), &at = call.in("coordinates"), &dy = call.in("dy");
  const int64_t batch = x.shape[0], channels = x.shape[1], ih = x.shape[2], iw = x.shape[3];
  const int64_t area = dy.shape[2] * dy.shape[3];
  std::vector<double> sums(static_cast<size_t>(x.count()));
  for (int64_t o = 0; o < batch * area; ++o) {
    const double u = load_f64(at, 2 * o), v = load_f64(at, 2 * o + 1);
    Sample sample{resample_position(s, u, iw), resample_position(s, v, ih), iw, ih};
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plane = o / area * channels + c, base = plane * ih * iw;
      const double d = load_f64(dy, plane * area + o % area);
      if (s.bilinear)
        sample.bilinear(
            d, s.pad, [&](int64_t i) { return load_f64(x, base + i); }, sums.data() + base);
      else
        sample.nearest(d, sums.data() + base);
    }
    store_f64(out[1], 2 * o, sample.dx * resample_slope(s, u, iw));
    store_f64(out[1], 2 * o + 1, sample.dy * resample_slope(s, v, ih));
  }
  for (int64_t i = 0; i < x.count(); ++i) store_f64(out[0], i, sums[static_cast<size_t>(i)]);
  return {};
}

}  // namespace

OpDef define_moka_resample_gradient() {
  OpBuilder b("moka_resample_gradient",
              "The gradients of resample's x and coordinates from the gradient dy of its result.", Opset::ios13);
  b.type_var("T", kF16F32).type_var("U", kF16F32).in("x", "T").in("coordinates", "U").in("dy", "T");
  return resample_params(b)
      .infer(infer_resample_gradient)
      .reference(resample_gradient_reference)
      .note("Coordinates have the gradient 0 where padding clamps them, and with nearest.",
            "torch.nn.functional.grid_sample with torch.autograd")
      .build();
}

}  // namespace moka::ops
