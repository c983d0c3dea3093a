// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/conv.h"

namespace moka::devices::gpu {

/// How many adjacent pixels of a row an invocation computes for each of its `channels` channels, at most 8. The choice
/// keeps the results beyond the end of the row and the elements that are read few.
int64_t block_pixels(const ops::Window& window, int64_t channels);

/// The order of a convolution's weights on the device, for each group. Tiled kernels read vectors of four channels in
/// the order [depth, channels / 4]. Block kernels read vectors of eight in the order [channels / 8, depth]. Channels
/// are those of the result, padded to a multiple of four or eight.
struct WeightOrder {
  WeightOrder(const Features& card, int64_t made);
  int64_t at(int64_t depth, int64_t k, int64_t channel) const {
    return (channel / together * depth + k) * together + channel % together;
  }
  std::string_view name;
  int64_t channels, together;  ///< `together`: adjacent channels in memory
};

/// How a convolution without shared memory is divided among invocations (shaders/conv_block.glsl). Each invocation
/// computes 8 channels of `pixels` adjacent pixels of a row.
struct ConvBlocks {
  ops::Window window;  ///< for 1 x 1 windows, each plane counts as one row
  int64_t pixels, images;
  uint32_t size;  ///< invocations of a workgroup
  std::array<int64_t, 3> groups;
  static constexpr size_t kFunctions = 1;  ///< index of the constants that name functions

  explicit ConvBlocks(const Conv& conv);
  /// For a transposed convolution, where each phase is a convolution with window `each`. `parts`: groups of channels.
  ConvBlocks(const Features& card, const ops::Window& each, int64_t made, int64_t images, int64_t parts);
  std::vector<uint32_t> constants(const After& after, bool fours) const;
  /// `uses` as shaders/conv_block.glsl binds them, x first. The last one is a norm's scales if `normed`.
  Status record(Recorder& recorder, const Conv& conv, const After& after, Element weights, const std::vector<Use>& uses,
                bool normed) const;
};

/// Parameters of shaders/conv_block.glsl.
struct BlockParams {
  ConvParams conv;
  uint32_t images;
  std::array<int32_t, 2> kernel;  ///< sizes of the kernel along the axes other than rows
  BlockParams(const ConvBlocks& blocks, const ConvParams& all);
};

}  // namespace moka::devices::gpu
