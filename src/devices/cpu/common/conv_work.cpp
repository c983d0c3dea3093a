// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/conv_work.h"

#include <algorithm>

#include "devices/cpu/isa.h"
#include "devices/cpu/vector/depthwise.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/narrow.h"

namespace moka::devices::cpu {

double reading_work(int64_t weights) {
  const double each = weights > kLargeWeights ? 27 : 1.5 * static_cast<double>(vector::gemm().lanes);
  return each * static_cast<double>(weights);
}

double direct_work(const ops::Window& w, int64_t images, int64_t in, int64_t out) {
  const int64_t block = channel_block();
  in = (in + block - 1) / block * block;
  out = (out + block - 1) / block * block;
  auto products = static_cast<double>(images * in * out);
  int64_t weights = in * out;
  for (int axis = 0; axis < w.rank; axis++) {
    int64_t inside = 0, taps = 0;
    for (int64_t k = 0; k < w.kernel[axis]; k++) {
      int64_t reached = 0;
      for (int64_t i = 0; i < w.out[axis]; i++) {
        const int64_t at = i * w.strides[axis] + k - w.pads_begin[axis];
        reached += at >= 0 && at < w.in[axis];
      }
      inside += reached;
      taps += reached > 0;
    }
    products *= static_cast<double>(inside);
    weights *= taps;
  }
  return 1.1 * products + 2 * reading_work(weights);
}

bool lies_in_blocks(const ops::Window& w, int64_t in, int64_t out) {
  const int64_t mixed = in / w.groups;
  if (w.groups == 1 || mixed >= channel_block() || vector::depthwise().lanes % mixed != 0) return false;
  if (in != out && mixed > 1) return false;
  const int last = w.rank - 1;
  return mixed == 1 || (w.kernel[last] == 3 && w.dilations[last] == 1 && w.strides[last] <= 2);
}

double inside_line(const ops::Window& w) {
  int64_t reached = 0;
  for (int64_t t = 0; t < w.kernel[0]; t++) {
    const int64_t at = t * w.dilations[0] - w.pads_begin[0], s = w.strides[0];
    const int64_t first = at >= 0 ? 0 : (-at + s - 1) / s, last = at >= w.in[0] ? 0 : (w.in[0] - 1 - at) / s + 1;
    reached += std::max<int64_t>(0, std::min(last, w.out[0]) - first);
  }
  return static_cast<double>(reached) / static_cast<double>(w.kernel[0] * w.out[0]);
}

std::optional<double> narrow_work(const ops::Window& w, int64_t images, int64_t in, int64_t out) {
  const int64_t lanes = vector::narrow().lanes;
  if ((out >= channel_block() && w.groups == 1) || w.taps() == 1 || w.strides[1] != 1) return std::nullopt;
  if (w.extent(0) > kMostNarrowHeight || w.pads_begin[1] < 0) return std::nullopt;
  const int64_t width = (w.out[1] + lanes - 1) / lanes * lanes;
  const int64_t most = vector::narrow().most, parts = (out + most - 1) / most;
  const auto products = static_cast<double>(w.out[0] * width * w.taps()) *
                        static_cast<double>(out + parts * std::max<int64_t>(1, lanes / 8)),
             copies = static_cast<double>(w.in[0] * (5 * w.in[1] + 100 * lanes));
  return static_cast<double>(images * w.groups * in) * (products + copies);
}

}  // namespace moka::devices::cpu
