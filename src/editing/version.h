#pragma once

#include <string_view>

#include "editing/features.h"

namespace moka::editing {

/// Raises the specification version to that of a system, "ios18", and the opset of ML programs with it. Error
/// invalid_argument (no such system, an older one than the model needs).
Status set_target(Message model, std::string_view target);

}  // namespace moka::editing
