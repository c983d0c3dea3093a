// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compress/encoding.h"

namespace moka::compress {

/// A compressed weight that became floats.
struct Decompressed {
  std::string name, operation;  ///< the type of the operation that expanded it, or of the layer
  Shape shape;
  bool half = false;
  size_t bytes_before = 0, bytes_after = 0;
};

}  // namespace moka::compress
