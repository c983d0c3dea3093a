// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"
#include "pictures/frame.h"
#include "pictures/placement.h"

namespace moka::runtime {

/// A picture of a camera for an input of planes, and where its part goes in them.
struct FittedFrame {
  pictures::Frame frame;
  pictures::Placement placement;
  kernel::PlaneOrder planes;
};

}  // namespace moka::runtime
