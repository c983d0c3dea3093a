#pragma once

#include <optional>

#include "ir/type.h"

namespace moka::ops {

/// The narrowest type that holds values of both. Dimensions and lengths that differ become unknown; equal symbols stay.
/// nullopt: kinds, element types or ranks differ.
std::optional<ir::Type> merge_types(const ir::Type& a, const ir::Type& b);

}  // namespace moka::ops
