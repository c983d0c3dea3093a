#pragma once

#include "devices/cpu/kernels/common.h"

namespace moka::devices::cpu {

/// Brings groups of neighbouring channels of a blocked tensor, [N, C, ...], to one mean and one standard deviation.
class BlockedNorm {
 public:
  BlockedNorm(const ir::Shape& x, int64_t groups, int64_t block, double epsilon);

  /// A tile is the fewest blocks of an image that hold whole groups.
  int64_t tiles() const { return images_ * units_; }
  /// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, both of all channels or null; padding is 0. Returns the
  /// elements [first, second) of y, from those of the whole tensor, that it wrote.
  std::pair<int64_t, int64_t> run(const float* x, const float* gamma, const float* beta, float* y, int64_t tile) const;

 private:
  int64_t images_, channels_, of_group_, block_, pixels_;
  int64_t blocks_;            ///< of an image
  int64_t unit_, units_ = 0;  ///< blocks of a tile; tiles of an image
  double epsilon_;
};

}  // namespace moka::devices::cpu
