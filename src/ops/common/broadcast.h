// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "ir/shape.h"

namespace moka::ops {

/// How up to three inputs are broadcast to an output. Adjacent dimensions are merged where all inputs allow it.
struct BroadcastWalk {
  int rank = 0;  ///< number of merged dimensions
  std::array<int64_t, ir::kMaxRank> size{};
  std::array<std::array<int64_t, ir::kMaxRank>, 3> stride{};  ///< per input, in elements; 0 where it is broadcast

  /// Shapes must be concrete and broadcast to `out`.
  BroadcastWalk(const ir::Shape& out, std::initializer_list<const ir::Shape*> in);

  int64_t row() const { return rank == 0 ? 1 : size[static_cast<size_t>(rank - 1)]; }
  int64_t row_stride(int input) const {
    return rank == 0 ? 0 : stride[static_cast<size_t>(input)][static_cast<size_t>(rank - 1)];
  }

  /// Calls fn(out_begin, begin0, begin1, begin2) for each row of `row()` consecutive output elements.
  template <class F>
  void each_row(int64_t count, F fn) const {
    const int64_t n = row();
    std::array<int64_t, ir::kMaxRank> at{};
    int64_t i0 = 0, i1 = 0, i2 = 0;
    for (int64_t o = 0; o < count; o += n) {
      fn(o, i0, i1, i2);
      for (int d = rank - 2; d >= 0; d--) {
        const auto k = static_cast<size_t>(d);
        i0 += stride[0][k];
        i1 += stride[1][k];
        i2 += stride[2][k];
        if (++at[k] < size[k]) break;
        i0 -= stride[0][k] * size[k];
        i1 -= stride[1][k] * size[k];
        i2 -= stride[2][k] * size[k];
        at[k] = 0;
      }
    }
  }
};

}  // namespace moka::ops
