#pragma once

#include "input.h"
#include "moka/model.h"

namespace moka::cli {

/// Rates of a pipeline whose first stage reads the inputs' files anew for each prediction, in predictions a second.
struct StreamRates {
  double reading = 0, predicting = 0;  ///< each stage alone, one after the other
  double stream = 0;                   ///< both at the same time
  size_t predictions = 0;              ///< of the stream

  /// The part of the slower stage's rate that the stream reaches.
  double share() const;
};

/// Measures each stage alone and the stream, each for `seconds`.
StreamRates measure_stream(const Model& model, const InputOptions& options, double seconds);

}  // namespace moka::cli
