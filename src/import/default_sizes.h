// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "import/description.h"
#include "ir/shape.h"

namespace moka::import {

/// The default sizes of a function's inputs that have others, too, by name. Empty: the model does not say one, or no
/// input is flexible. `classic`: as for boundary_type.
Result<std::map<std::string, ir::Shape>> default_sizes(const FunctionDescription& function, bool classic);

}  // namespace moka::import
