// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "linting/lint.h"
#include "moka/lint.h"

namespace moka::measuring {

/// Predicts with the model at `path` and records what each value was like, and with which of the allowed sizes of
/// inputs a prediction fails. asks_neural_engine: also records what that unit refuses. What cannot be run becomes a
/// remark of `report`, or the subject's load_error.
void measure(const std::string& path, const lint::Options& options, bool asks_neural_engine, linting::Subject& subject,
             lint::Report& report);

}  // namespace moka::measuring
