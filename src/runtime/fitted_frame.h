// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/packed_frame.h"

namespace moka::runtime {

/// A picture of a camera for an input of planes.
struct FittedFrame {
  kernel::FramePicture picture;
  kernel::PlaneOrder planes;

  int channels() const { return planes == kernel::PlaneOrder::gray ? 1 : 3; }
};

}  // namespace moka::runtime
