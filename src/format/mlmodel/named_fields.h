// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moka::format {

/// A serialized message of the specification as pairs of a field's path and its value: {"padding.same.mode",
/// "BOTTOM_RIGHT_HEAVY"}, {"kernelSize", "[3, 3]"}. Leaves out weights, and ends lists of more than 32 numbers and
/// more than 200 pairs with an ellipsis. A damaged message gives the fields before the damage.
std::vector<std::pair<std::string, std::string>> named_fields(std::string_view serialized, std::string_view type);

}  // namespace moka::format
