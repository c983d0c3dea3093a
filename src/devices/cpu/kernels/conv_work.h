#pragma once

#include <optional>

#include "ops/common/window.h"

/// What convolutions cost, in products of a vector's lane, by one kernel or another. The factors are fitted to times on
/// SSE, AVX2 and AVX-512.
namespace moka::devices::cpu {

constexpr int64_t kLargeWeights = 1 << 20;  ///< floats that only memory holds

/// Reading weights; large ones also because they take memory.
double reading_work(int64_t weights);
/// oneDNN's direct convolution of whole blocks of channels, which leaves out what lies outside of the image.
double direct_work(const ops::Window& w, int64_t images, int64_t in, int64_t out);
constexpr int64_t kMostNarrowHeight = 16;  ///< of a window, dilation included
/// Groups of channels that cpu.conv.depthwise mixes inside a block.
bool lies_in_blocks(const ops::Window& w, int64_t in, int64_t out);
/// cpu.conv.narrow, `in` and `out` channels of a group; nullopt: it refuses the window or the channels.
std::optional<double> narrow_work(const ops::Window& w, int64_t images, int64_t in, int64_t out);

}  // namespace moka::devices::cpu
