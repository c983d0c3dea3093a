#pragma once

#include "devices/vulkan/kernels/conv.h"

/// Depthwise convolutions and the convolutions of 1 x 1 that read them are one dispatch: the second computes tiles of
/// the first while it reads them (shaders/conv_depthwise.comp), so that what lies between is neither written nor read.
namespace moka::devices::vulkan {

/// What it has to know of a depthwise convolution; nullptr: it is not one of two dimensions with as many results as
/// channels, or has an addend.
std::shared_ptr<const Producer> depthwise_producer(const Conv& conv, const After& after, const RecordArgs& args);

/// How a convolution of 1 x 1 absorbs one. `uses`: x, weights in fours, bias, addend, result; those that are not there
/// are unused.
Absorb absorb_depthwise(const Conv& conv, const After& after, Element weights, const std::vector<Use>& uses);

}  // namespace moka::devices::vulkan
