// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "devices/cpu/common/common.h"

namespace moka::devices::cpu {

/// Positions in a tensor that vectors of indices address. Indices may be of any integer type.
struct IndexVectors {
  int depth = 0;  ///< components of a vector
  std::array<int64_t, ir::kMaxRank> sizes{}, steps{};

  void add(int64_t size, int64_t step) {
    sizes[static_cast<size_t>(depth)] = size;
    steps[static_cast<size_t>(depth++)] = step;
  }
  /// at[i] is the position of vector `first` + i, for i < n. Indices outside are moved to the nearest end.
  void nearest(const ir::TensorView& indices, int64_t first, int64_t n, int64_t* at) const;
  /// The same, but -1 for vectors that are outside. `wraps`: negative indices count from the end.
  void locate(const ir::TensorView& indices, int64_t first, int64_t n, bool wraps, int64_t* at) const;
};

}  // namespace moka::devices::cpu
