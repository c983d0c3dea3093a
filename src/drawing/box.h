// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace moka::drawing {

/// Fractions of the model's image, from the top left corner.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  size_t index = 0;   ///< of the class
  std::string label;  ///< the class's index if it has no name
  double confidence = 0;
};

}  // namespace moka::drawing
