// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/source.h"

namespace moka::editing {

/// As cut, for a neural network: names are features, what layers compute, or layers. New features are float32 arrays of
/// the sizes that Moka infers for the default shapes. A classifier or regressor whose outputs change becomes a plain
/// network, and an updatable network is not updatable anymore.
Status cut_network(format::ModelSource& source, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs);

}  // namespace moka::editing
