#pragma once

#include "devices/vulkan/kernels/conv.h"

namespace moka::devices::vulkan {

/// How many neighbors of a row an invocation computes for each of its `channels` channels, at most 8. It wastes few
/// results beyond the row's end and reads few elements.
int64_t block_pixels(const ops::Window& window, int64_t channels);

/// How a device reads the weights of a convolution, for each group. Tiles: [depth, channels / 4] of four. Blocks:
/// [channels / 8, depth] of eight. Channels are those of the result, padded to whole fours or eights.
struct WeightOrder {
  explicit WeightOrder(int64_t made);
  int64_t at(int64_t depth, int64_t k, int64_t channel) const {
    return (channel / together * depth + k) * together + channel % together;
  }
  std::string_view name;
  int64_t channels, together;  ///< how many lie side by side
};

/// How a convolution is divided among invocations that use no shared memory (shaders/conv_block.glsl): each computes 8
/// channels of `pixels` neighbors of a row.
struct ConvBlocks {
  ops::Window window;  ///< of 1 x 1: over each plane as one row
  int64_t pixels, images;
  std::array<int64_t, 3> groups;
  static constexpr size_t kFunctions = 1;  ///< where its constants have the functions

  explicit ConvBlocks(const Conv& conv);
  /// `parts`: groups of channels, for each phase of a transposed convolution, whose window is `each`.
  ConvBlocks(const ops::Window& each, int64_t made, int64_t images, int64_t parts);
  std::vector<uint32_t> constants(const After& after, bool fours) const;
  /// `uses` as shaders/conv_block.glsl binds them, x first.
  Status record(Recorder& recorder, const Conv& conv, const After& after, Element weights,
                const std::vector<Use>& uses) const;
};

/// Push constants of shaders/conv_block.glsl.
struct BlockParams {
  ConvParams conv;
  uint32_t images;
  std::array<int32_t, 2> kernel;  ///< its sizes but along rows
  BlockParams(const ConvBlocks& blocks, const ConvParams& all);
};

}  // namespace moka::devices::vulkan
