// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/cpu/common/common.h"

namespace moka::devices::cpu {

/// Group normalization of a blocked tensor [N, C, ...]: each group of adjacent channels gets mean 0 and variance 1.
class BlockedNorm {
 public:
  BlockedNorm(const ir::Shape& x, int64_t groups, int64_t block, double epsilon);

  /// A tile is the least number of blocks of an image that holds whole groups.
  int64_t tiles() const { return images_ * units_; }
  /// Computes a tile of y = (x - mean) / sqrt(variance + epsilon) * gamma + beta and zeroes its padding channels. gamma
  /// and beta have one value per channel or are null. Returns the range of y's elements that it wrote.
  std::pair<int64_t, int64_t> run(const float* x, const float* gamma, const float* beta, float* y, int64_t tile) const;

 private:
  int64_t images_, channels_, of_group_, block_, pixels_;
  int64_t blocks_;            ///< blocks per image
  int64_t unit_, units_ = 0;  ///< blocks per tile; tiles per image
  double epsilon_;
};

}  // namespace moka::devices::cpu
