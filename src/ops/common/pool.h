// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"
#include "ops/common/window.h"

/// Shared by all pooling operations.
namespace moka::ops {

/// Declares the parameters that every pool has: x, kernel_sizes, strides, pad_type, pad, ceil_mode.
ir::OpBuilder& pool_params(ir::OpBuilder& builder);

/// Infers the output of a pool over at most `max_rank` spatial dimensions.
ir::InferFn infer_pool(int max_rank);

/// Infers the type of x for a gradient of a pool, whose `dy` must have the type of the pool's result.
ir::InferFn infer_pool_gradient(int max_rank);

/// The elements of a window inside the input, as ranges of three dimensions.
struct WindowPlace {
  int64_t begin[3], end[3];
  int64_t inside() const {
    int64_t n = 1;
    for (int i = 0; i < 3; i++) n *= std::max<int64_t>(0, end[i] - begin[i]);
    return n;
  }
  /// Calls fn with the index of each element, in order. `first` is that of the plane's first element.
  template <class F>
  void each(const Window& w, int64_t first, F fn) const {
    for (int64_t i = begin[0]; i < end[0]; i++)
      for (int64_t j = begin[1]; j < end[1]; j++)
        for (int64_t k = begin[2]; k < end[2]; k++) fn(first + (i * w.in[1] + j) * w.in[2] + k);
  }
};
/// Calls fn(first, place) for each window of every plane, in order, with the index of the plane's first element. The
/// window has rank 3.
template <class F>
void each_window(int64_t planes, const Window& w, F fn) {
  for (int64_t p = 0; p < planes; ++p)
    for (int64_t od = 0; od < w.out[0]; ++od)
      for (int64_t oh = 0; oh < w.out[1]; ++oh)
        for (int64_t ow = 0; ow < w.out[2]; ++ow) {
          const int64_t o[3] = {od, oh, ow};
          WindowPlace at;
          for (int i = 0; i < 3; i++) {
            const int64_t first = o[i] * w.strides[i] - w.pads_begin[i];
            at.begin[i] = std::max<int64_t>(first, 0);
            at.end[i] = std::min(first + w.kernel[i], w.in[i]);
          }
          fn(p * w.in_count(), at);
        }
}

/// y = finish(fold(... fold(start, v1) ..., vn), n) for each output element, where v1 to vn are the elements of its
/// window that are inside the input.
template <class Fold, class Finish>
void pool_each(const ir::TensorView& x, const Window& window, const ir::TensorView& y, double start, Fold fold,
               Finish finish) {
  const Window w = window.as_3d();
  const int64_t planes = x.shape[0] * x.shape[1], in_plane = w.in_count(), out_plane = w.out_count();
  with_reader(x, [&](auto read) {
    for (int64_t p = 0; p < planes; ++p) {
      const int64_t base = p * in_plane;
      int64_t at = p * out_plane;
      for (int64_t od = 0; od < w.out[0]; ++od) {
        const int64_t d = od * w.strides[0] - w.pads_begin[0];
        const int64_t d0 = std::max<int64_t>(d, 0), d1 = std::min(d + w.kernel[0], w.in[0]);
        for (int64_t oh = 0; oh < w.out[1]; ++oh) {
          const int64_t h = oh * w.strides[1] - w.pads_begin[1];
          const int64_t h0 = std::max<int64_t>(h, 0), h1 = std::min(h + w.kernel[1], w.in[1]);
          for (int64_t ow = 0; ow < w.out[2]; ++ow, ++at) {
            const int64_t v = ow * w.strides[2] - w.pads_begin[2];
            const int64_t v0 = std::max<int64_t>(v, 0), v1 = std::min(v + w.kernel[2], w.in[2]);
            double acc = start;
            for (int64_t i = d0; i < d1; ++i) {
              for (int64_t j = h0; j < h1; ++j) {
                const int64_t row = base + (i * w.in[1] + j) * w.in[2];
                for (int64_t k = v0; k < v1; ++k) acc = fold(acc, read(row + k));
              }
            }
            const int64_t inside =
                std::max<int64_t>(0, d1 - d0) * std::max<int64_t>(0, h1 - h0) * std::max<int64_t>(0, v1 - v0);
            const double result = finish(acc, inside);
            store_run(y, at, 1, 1, &result);
          }
        }
      }
    }
    return 0;
  });
}

}  // namespace moka::ops
