// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "moka/drawing.h"
#include "size_curve.h"

namespace moka::cli {

/// Sizes from left to right, signal to noise from bottom to top: a line of what is expected, discs of what was
/// measured, and a larger one for the model that was written.
Plot plot_of(const Curve& curve);

}  // namespace moka::cli
