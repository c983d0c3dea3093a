// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "moka/lint.h"

namespace moka::measuring {

/// Predicts with the model at `path` and with the repaired one, on the inputs of `options` or random ones. Throws
/// `internal` where results differ by more than rounding. Outputs that differ each time are not compared.
void check_repair(const std::string& path, const ModelSource& repaired, const lint::Options& options);

}  // namespace moka::measuring
