// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ops/common/window.h"

/// Cost model of convolutions, in multiply-adds of one vector lane. Kernels refuse a call when the model estimates that
/// another kernel is faster. The factors were fitted to times measured with SSE, AVX2 and AVX-512.
namespace moka::devices::cpu {

/// Input channels of a group from which cpu.conv.dense runs windows of one pixel between blocks.
constexpr int64_t kDeepPixel = 160;
constexpr int64_t kLargeWeights = 1 << 20;  ///< size in floats beyond any cache

/// The cost of reading weights. Large weights cost more per float, in part because they take memory.
double reading_work(int64_t weights);
/// The cost of oneDNN's direct convolution, which works on whole blocks of channels and skips padding.
double direct_work(const ops::Window& w, int64_t images, int64_t in, int64_t out);
constexpr int64_t kMostNarrowHeight = 16;  ///< tallest window, dilation included
/// Whether each group lies in one block of channels, so that cpu.conv.depthwise can run the convolution.
bool lies_in_blocks(const ops::Window& w, int64_t in, int64_t out);
/// The share of the products of a window of one dimension that do not read padding.
double inside_line(const ops::Window& w);
/// The cost of cpu.conv.narrow. `in` and `out` are channels per group. nullopt: it does not support the window or the
/// channels.
std::optional<double> narrow_work(const ops::Window& w, int64_t images, int64_t in, int64_t out);

}  // namespace moka::devices::cpu
