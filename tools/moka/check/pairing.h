// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "moka/verify.h"

namespace moka::cli {

/// The pairs that --map names as "name=other". Throws UsageError unless each name exists on its side, every input that
/// the other side needs has a partner, and an output has one.
NamePairs parse_map(const std::vector<std::string>& texts, const FunctionDescription& model,
                    const std::vector<FeatureDescription>& inputs, const std::vector<FeatureDescription>& outputs);

/// What the options --pixel-scale and --pixel-bias say: "1/255", "-1". Throws UsageError.
PixelScale pixel_scale_of(const std::string& scale, const std::string& bias);

}  // namespace moka::cli
