// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "answers.h"
#include "io/picture.h"
#include "moka/multi_array.h"

namespace moka::cli {

/// The planes of an array as heat maps.
struct Sheet {
  io::Picture picture;            ///< 4 channels; empty: the array has no planes that are worth a map
  int64_t planes = 0;             ///< of the array
  int64_t shown = 0;              ///< the first so many are in the picture
  int64_t rows = 0, columns = 0;  ///< of a plane
};

/// Arrays of at least 64 elements in the last two dimensions, without those of size 1, have maps: one for each plane,
/// numbered, in the colors of heat_color from the array's least to its greatest value. Elements that are not finite are
/// red. `facts`: of the array.
Sheet sheet_of(const MultiArray& array, const ArrayFacts& facts);

}  // namespace moka::cli
