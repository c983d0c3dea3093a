// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "moka/feature.h"

namespace moka::test {

/// The first difference of the answers; empty: they are equal. Numbers may differ by `tolerance`, relative to the
/// larger of 1 and the number. A dictionary may have come back as the vector of its values.
std::string difference(const FeatureValue& got, const FeatureValue& expected, double tolerance);

}  // namespace moka::test
