// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "moka/description.h"
#include "moka/feature.h"

namespace moka::cli {

using NamePairs = std::vector<std::pair<std::string, std::string>>;

/// Pairs features of a model with those of another: by `map` (model's name, other's name), then by name, then by equal
/// shape in their order, then by order. Those of `from` without a partner are left out; `what`: "input".
NamePairs paired_features(const std::vector<FeatureDescription>& from, const std::vector<FeatureDescription>& to,
                          const NamePairs& map);

/// Parses "a=b". Throws UsageError unless each name exists on its side.
NamePairs parse_map(const std::vector<std::string>& texts, const FunctionDescription& from,
                    const std::vector<FeatureDescription>& inputs, const std::vector<FeatureDescription>& outputs);

/// How pixels become numbers where the other model takes an array: pixel * scale + bias.
struct PixelScale {
  double scale = 1, bias = 0;
  bool operator==(const PixelScale&) const = default;
};
/// What the options --pixel-scale and --pixel-bias say: "1/255", "-1". Throws UsageError.
PixelScale pixel_scale_of(const std::string& scale, const std::string& bias);

/// The value in the form of the other model's input. Throws UsageError.
FeatureValue adapted(const FeatureValue& value, const FeatureDescription& to, const PixelScale& pixels);

}  // namespace moka::cli
