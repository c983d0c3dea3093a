#pragma once

#include "devices/vulkan/kernels/common.h"
#include "ops/common/window.h"

namespace moka::devices::vulkan {

/// A window of three dimensions in push constants.
struct WindowParams {
  std::array<int32_t, 3> in_size, out_size, strides, dilations, pads;
  explicit WindowParams(const ops::Window& w);
};

}  // namespace moka::devices::vulkan
