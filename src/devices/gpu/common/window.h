// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/common.h"
#include "ops/common/window.h"

namespace moka::devices::gpu {

/// A window of three dimensions in parameters.
struct WindowParams {
  std::array<int32_t, 3> in_size, out_size, strides, dilations, pads;
  explicit WindowParams(const ops::Window& w);
};

}  // namespace moka::devices::gpu
