// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/picture.h"
#include "learning_curve.h"

namespace moka::cli {

/// Epochs from left to right, losses from bottom to top: a line of the mini-batches and discs of the epochs. 4
/// channels.
io::Picture drawn_curve(const LearningCurve& curve);

}  // namespace moka::cli
