// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/window.h"

/// Shared by the kernels that read the windows of pools line by line.
namespace moka::devices::cpu {

/// The positions of a window along an axis that are inside the input.
struct Inside {
  int64_t first, count;
};

inline Inside inside_of(const ops::Window& w, int axis, int64_t out) {
  const int64_t at = out * w.strides[axis] - w.pads_begin[axis], first = std::clamp<int64_t>(at, 0, w.in[axis]);
  return {first, std::clamp(at + w.kernel[axis], first, w.in[axis]) - first};
}

/// Sets what all lines of a window of rank 3 have in common, for pixels of `block` floats.
template <class Call>
void set_lines(Call& call, const ops::Window& w, int64_t block, bool inside) {
  call.line = w.in[2] * block;
  call.slice = w.in[1] * call.line;
  call.in = w.in[2];
  call.taps = w.kernel[2];
  call.stride = w.strides[2];
  call.pad = w.pads_begin[2];
  call.inside = inside;
  call.out = w.out[2];
}

}  // namespace moka::devices::cpu
