// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "moka/model.h"

namespace moka::cli {

/// Predicts many rows of inputs at a time, without a state. The results are the same as those of predict. Rows are
/// predicted as a table if all their values fit columns, otherwise as a batch. About ten times a second, `advance`
/// receives the number of finished rows. Throws what predict throws; the message has the number of the row, from 1.
std::vector<Features> predict_rows(const Model& model, std::span<const Features> rows,
                                   const std::function<void(size_t)>& advance);

}  // namespace moka::cli
