// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace moka::cli {

/// Losses of a training over its epochs: the first epoch goes from 0 to 1.
struct LearningCurve {
  std::vector<std::pair<double, double>> mini_batches, epochs;  ///< where they end, and their losses

  double last() const;  ///< the end of the last mini-batch, at least 1
  double top() const;   ///< a round number that no loss exceeds
};

/// A chart for a terminal: '.' mini-batches, 'o' means of epochs.
std::string curve_text(const LearningCurve& curve);

}  // namespace moka::cli
