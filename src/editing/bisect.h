// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source.h"

namespace moka::editing {

/// Cuts an ML program into two of about the same size of weights, or of the same number of operations where there are
/// no weights. `first` returns what `second` reads, and `second` may also read inputs of the model. The cut lies where
/// few values pass it. Errors: as cut; unsupported (a program that cannot be cut between two operations).
struct Halves {
  format::ModelSource first, second;
};
Result<Halves> bisect(const format::ModelSource& source);

/// Makes a pipeline of the two halves, with the features of the model.
Status bisect_into_pipeline(format::ModelSource& source);

}  // namespace moka::editing
