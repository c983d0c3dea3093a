// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compress/constants.h"
#include "compress/site.h"
#include "format/weights/weight_store.h"

namespace moka::compress {

/// The weight files of a model.
format::WeightStore store_of(const format::ModelSource& source);

/// The elements of a constant. Errors: malformed.
Result<std::vector<float>> values_of(const Found& found, const format::WeightStore& store);

/// Constants of the same key have the same place, form, shape and axes, and are encoded once.
std::string key_of(const Found& found);
Site site_of(const Found& found, bool shared);

/// Sets the errors of an outcome. If values differ by more than a form can make them differ, sets `skipped` instead.
void compare(const std::vector<float>& values, const std::vector<float>& decoded, bool pruned, Outcome& outcome);

struct Made {
  Outcome outcome;
  std::optional<Encoding> encoding;  ///< nullopt: it was skipped
};

/// Encodes a constant by a recipe that does not keep it, and compares the result with its source. Error: malformed.
Result<Made> encode_site(const Found& found, const Site& site, const Recipe& recipe, const format::WeightStore& store);

}  // namespace moka::compress
