// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "import/description.h"

namespace moka::compiler {

/// An input, output or state in code.
struct Field {
  import::FeatureDescription feature;
  std::string identifier;
};

}  // namespace moka::compiler
