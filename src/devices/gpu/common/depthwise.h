// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/conv.h"

/// A depthwise convolution and the 1 x 1 convolution that reads it become one dispatch: the second computes tiles of
/// the first when it needs them (shaders/conv_depthwise.comp). The intermediate result is never in memory.
namespace moka::devices::gpu {

/// Describes a depthwise convolution for the dispatch that absorbs it. nullptr: the convolution has an addend, or is
/// not a two-dimensional one with one result for each channel.
std::shared_ptr<const Producer> depthwise_producer(const Conv& conv, const After& after, const RecordArgs& args);

/// How a 1 x 1 convolution absorbs a depthwise one. `uses`: x, weights in vectors of four, bias, addend, result, and a
/// norm's scales if `normed`. A bias or an addend that is absent is an unused binding.
Absorb absorb_depthwise(const Conv& conv, const After& after, Element weights, const std::vector<Use>& uses,
                        bool normed);

}  // namespace moka::devices::gpu
