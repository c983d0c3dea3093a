// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "editing/features.h"

namespace moka::editing {

/// A system that introduced a version of the specification.
struct System {
  std::string_view name;   ///< "ios18"
  int version;             ///< of the specification
  std::string_view opset;  ///< of ML programs, as messages name it; empty: it has none
};
std::span<const System> systems();  ///< the oldest first
/// nullptr: there is none of that name.
const System* find_system(std::string_view name);

/// Raises the specification version to that of a system, "ios18", and the opset of ML programs with it. Error
/// invalid_argument (no such system, an older one than the model needs).
Status set_target(Message model, std::string_view target);

}  // namespace moka::editing
