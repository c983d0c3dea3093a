// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/window.h"

namespace moka::devices::gpu {

WindowParams::WindowParams(const ops::Window& w) {
  for (int i = 0; i < 3; i++) {
    const auto at = static_cast<size_t>(i);
    in_size[at] = static_cast<int32_t>(w.in[i]);
    out_size[at] = static_cast<int32_t>(w.out[i]);
    strides[at] = static_cast<int32_t>(w.strides[i]);
    dilations[at] = static_cast<int32_t>(w.dilations[i]);
    pads[at] = static_cast<int32_t>(w.pads_begin[i]);
  }
}

}  // namespace moka::devices::gpu
