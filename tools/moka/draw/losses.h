// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learning_curve.h"
#include "moka/drawing.h"

namespace moka::cli {

/// Epochs from left to right, losses from bottom to top: a line of the mini-batches and discs of the epochs.
Plot plot_of(const LearningCurve& curve);

}  // namespace moka::cli
