#pragma once

#include <functional>
#include <span>
#include <vector>

#include "moka/model.h"

namespace moka::cli {

/// Predicts rows of inputs, many at a time, without a state. Each result equals that of predict. Rows whose values all
/// fit columns are predicted as a table, others as a batch. `advance` receives the number of rows that are done, about
/// ten times a second. Throws what predict throws, naming the row, which counts from 1.
std::vector<Features> predict_rows(const Model& model, std::span<const Features> rows,
                                   const std::function<void(size_t)>& advance);

}  // namespace moka::cli
