// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "moka/description.h"
#include "moka/feature.h"

/// Numbers and pixels in the form that a feature describes. Every function that throws throws invalid_argument.
namespace moka {

/// As describe, with the format of pixels: "Image (BGRA 28 x 28)".
MOKA_EXPORT std::string describe_in_full(const FeatureValue& value);

/// The shape for a flat list of `count` numbers within the constraint; nullopt when none fits.
MOKA_EXPORT std::optional<std::vector<int64_t>> shape_for_count(const MultiArrayConstraint& constraint, int64_t count);

/// Numbers in row-major order as an array of the described element type. Without a shape, or with one of one dimension,
/// they are a flat list, which takes the described shape if the count fits. Throws for a count that does not fit, and
/// for numbers that an integer type does not hold.
MOKA_EXPORT MultiArray array_of_numbers(const FeatureDescription& feature, std::span<const double> numbers,
                                        std::optional<std::vector<int64_t>> shape = std::nullopt);

/// An array as the pixels of an image: height x width, or with colors in the last or the first dimension. Numbers are
/// whole, from 0 to 255, except for images of half floats. Throws for other shapes and numbers.
MOKA_EXPORT Image image_of_array(const FeatureDescription& feature, const MultiArray& array);

}  // namespace moka
