// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Norms over the channels of each pixel, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta. Null gamma: all ones; null beta: all zeros. y may be x.
struct ChannelNorm {
  /// Channels in blocks of `lanes` (8 or 16), `step` floats from one block of a pixel to the next. Padding channels of
  /// x are ignored, and those of y become zeros.
  void (*blocked)(const float* x, int64_t step, int64_t channels, int64_t pixels, int lanes, const float* gamma,
                  const float* beta, float epsilon, float* y);
  /// Adjacent pixels, `step` floats from one channel to the next.
  void (*planes)(const float* x, int64_t step, int64_t channels, int64_t pixels, const float* gamma, const float* beta,
                 float epsilon, float* y);
};

/// The table for this processor.
const ChannelNorm& channel_norm();

const ChannelNorm& channel_norm_base();
const ChannelNorm& channel_norm_avx2();
const ChannelNorm& channel_norm_avx512();

}  // namespace moka::devices::cpu::vector
