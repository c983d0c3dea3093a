// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/type.h"

namespace moka::ops {

/// The most specific type that holds values of both types. Ranks, dimensions and lengths that differ become unknown;
/// equal symbols are kept. nullopt: kinds or element types differ.
std::optional<ir::Type> merge_types(const ir::Type& a, const ir::Type& b);

}  // namespace moka::ops
