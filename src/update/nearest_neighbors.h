// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "format/source.h"
#include "import/update/update.h"

/// Updates of models.
namespace moka::update {

/// Texts or integers, as the classifier has them.
using Labels = std::variant<std::vector<std::string>, std::vector<int64_t>>;

/// Whether a classifier that `update` describes takes these samples and this number of neighbors. Error
/// invalid_argument.
Status check_samples(const import::UpdateDescription& update, std::span<const float> rows, int64_t dimensions,
                     const Labels& labels, std::optional<int64_t> neighbors);

/// Appends samples to an updatable nearest-neighbors classifier, or to the one that ends an updatable pipeline. `rows`
/// holds one row of `dimensions` finite numbers after the other, one for each label. `neighbors` replaces the number of
/// neighbors that a prediction looks for. Errors: unsupported (another kind of model), invalid_argument (the model is
/// not updatable, the dimensions or the labels do not fit, the number of neighbors is not allowed), malformed. The
/// model is unchanged after an error.
Status add_samples(format::ModelSource& source, std::span<const float> rows, int64_t dimensions, const Labels& labels,
                   std::optional<int64_t> neighbors);

}  // namespace moka::update
