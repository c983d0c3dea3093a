// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "moka/model.h"

namespace moka::checking {

/// All predictions of a model, each with a new state. Calls `advance` with the number of finished ones.
std::vector<Features> predict_each(const Model& model, const std::vector<Features>& items,
                                   const std::function<void(size_t done)>& advance);

/// Throws invalid_argument below 1: a comparison of nothing would find no difference.
void require_runs(int64_t runs);

}  // namespace moka::checking
