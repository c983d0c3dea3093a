// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "moka/comparison.h"

namespace moka::diff {

/// The fields that differ in the specifications of two models, without their descriptions, and the weight files that
/// differ. Throws what ModelSource::open throws.
std::vector<ModelComparison::Feature> compare_fields(const std::string& a, const std::string& b);

}  // namespace moka::diff
