// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "moka/description.h"

namespace moka::files {

/// The dimension of the shape that counts the samples of a sound: the only one that is not 1 or that may vary.
std::optional<size_t> sample_axis(const MultiArrayConstraint& constraint);

}  // namespace moka::files
