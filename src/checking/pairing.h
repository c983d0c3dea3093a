// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "moka/verify.h"

namespace moka::checking {

/// The feature of this name, or nullptr.
const FeatureDescription* feature_named(const std::vector<FeatureDescription>& features, std::string_view name);

/// Throws invalid_argument unless each name exists on its side.
void check_map(const NamePairs& map, const FunctionDescription& from, const std::vector<FeatureDescription>& inputs,
               const std::vector<FeatureDescription>& outputs);

/// Draws the numbers of arrays anew. Throws invalid_argument for a range of what is not an array input.
void spread(Features& inputs, const NumberRanges& ranges, const FunctionDescription& function, uint64_t seed);

/// The value in the form of the other side's input. Throws invalid_argument.
FeatureValue adapted(const FeatureValue& value, const FeatureDescription& to, const PixelScale& pixels);

}  // namespace moka::checking
