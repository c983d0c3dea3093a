// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "input.h"
#include "moka/model.h"

namespace moka::cli {

/// Rates, in predictions per second, of a pipeline whose first stage reads the inputs' files for each prediction.
struct StreamRates {
  double reading = 0, predicting = 0;  ///< each stage alone
  double stream = 0;                   ///< both at the same time
  size_t predictions = 0;              ///< number of predictions of the stream

  /// The stream's rate relative to that of the slower stage.
  double share() const;
};

/// Measures each stage alone and the stream, each for `seconds`.
StreamRates measure_stream(const Model& model, const InputOptions& options, double seconds);

}  // namespace moka::cli
