// SPDX-License-Identifier: Apache-2.0
#include "ops/common/convolution.h"

#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/product.h"
#include "ops/common/runs.h"

namespace moka::ops {

using namespace ir;

namespace {

/// Reads the inputs of one (channel, tap) of the kernel at consecutive output positions of one image and group.
struct PatchReader {
  const TensorView& x;
  const Window& w;  // rank 3
  int64_t base;     // offset of the group's first channel in the image

  void operator()(int64_t k, int64_t position, int64_t n, double* to) const {
    const int64_t taps = w.taps();
    const int64_t channel = k / taps;
    int64_t tap = k % taps;
    const int64_t kw = tap % w.kernel[2];
    tap /= w.kernel[2];
    const int64_t kh = tap % w.kernel[1], kd = tap / w.kernel[1];
    const int64_t plane = base + channel * w.in_count();
    const int64_t shift = kw * w.dilations[2] - w.pads_begin[2];
    while (n > 0) {
      const int64_t ow = position % w.out[2], row = position / w.out[2];
      const int64_t run = std::min(n, w.out[2] - ow);
      const int64_t id = row / w.out[1] * w.strides[0] + kd * w.dilations[0] - w.pads_begin[0];
      const int64_t ih = row % w.out[1] * w.strides[1] + kh * w.dilations[1] - w.pads_begin[1];
      int64_t first = 0, last = 0;  // the part of the run that is inside the input
      if (id >= 0 && id < w.in[0] && ih >= 0 && ih < w.in[1]) {
        const int64_t s = w.strides[2], at = ow * s + shift;
        first = at >= 0 ? 0 : std::min(run, (-at + s - 1) / s);
        last = at >= w.in[2] ? first : std::max(first, std::min(run, (w.in[2] - 1 - at) / s + 1));
        if (last > first) {
          load_run(x, plane + (id * w.in[1] + ih) * w.in[2] + at + first * s, s, last - first, to + first);
        }
      }
      std::fill(to, to + first, 0.0);
      std::fill(to + last, to + run, 0.0);
      to += run;
      position += run;
      n -= run;
    }
  }
};

}  // namespace

void convolve(const TensorView& x, const TensorView& weight, const TensorView* bias, const Window& w,
              const TensorView& out) {
  const int64_t batch = x.shape[0], channels = x.shape[1], made = weight.shape[0];
  const int64_t group_made = made / w.groups, depth = channels / w.groups * w.taps();
  const int64_t positions = w.out_count();
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t g = 0; g < w.groups; ++g) {
      const PatchReader patches{x, w, (n * channels + g * (channels / w.groups)) * w.in_count()};
      const int64_t first = g * group_made;
      blocked_product<double>(
          group_made, positions, depth,
          [&](int64_t i, int64_t k, int64_t count, double* to) {
            load_run(weight, (first + i) * depth + k, 1, count, to);
          },
          patches,
          [&](int64_t i, int64_t j, int64_t count, double* c) {
            if (bias != nullptr) {
              const double b = load_f64(*bias, first + i);
              for (int64_t q = 0; q < count; ++q) c[q] += b;
            }
            store_run(out, (n * made + first + i) * positions + j, 1, count, c);
          });
    }
  }
}

OpBuilder& add_window_params(OpBuilder& b) {
  return b.constant("strides", kI32)
      .optional()
      .constant("pad_type", kString)
      .one_of({"valid", "same", "same_lower", "custom"})
      .or_else(Tensor::text("valid"))
      .constant("pad", kI32)
      .optional()
      .constant("dilations", kI32)
      .optional()
      .constant("groups", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1));
}

}  // namespace moka::ops
