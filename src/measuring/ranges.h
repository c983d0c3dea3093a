// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "format/source.h"
#include "moka/compress.h"

namespace moka::measuring {

/// Measures the ranges of all values on the given inputs, and quantizes activations of the program by them. `wrapped`
/// makes a public source, to load it. Throws what loading and predicting throw; invalid_argument (no inputs).
std::vector<CompressedActivation> quantize_activations(format::ModelSource& source,
                                                       const ActivationCompression& activations,
                                                       const std::function<ModelSource(format::ModelSource)>& wrapped);

}  // namespace moka::measuring
