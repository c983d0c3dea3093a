#pragma once

#include "devices/vulkan/kernels/conv.h"

namespace moka::devices::vulkan {

/// How many neighbors of a row an invocation computes for each of its `channels` channels, at most 8. It wastes few
/// results beyond the row's end and reads few elements.
int64_t block_pixels(const ops::Window& window, int64_t channels);

/// How a convolution is divided among invocations that use no shared memory (shaders/conv_block.comp): each computes 8
/// channels of `pixels` neighbors of a row.
struct ConvBlocks {
  ops::Window window;  ///< of 1 x 1: over each plane as one row
  int64_t pixels;
  std::array<int64_t, 3> groups;

  explicit ConvBlocks(const Conv& conv);
  /// `uses` as shaders/conv_block.comp binds them, x first.
  Status record(Recorder& recorder, const Conv& conv, const After& after, Element weights,
                const std::vector<Use>& uses) const;
};

}  // namespace moka::devices::vulkan
