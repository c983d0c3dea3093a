// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace moka::files {

/// Throws invalid_argument when the text is not JSON (with line, column and reason), or is nested deeper than any value
/// can be.
nlohmann::json parse_json(std::string_view text);

/// Whether the text is valid JSON, at any nesting depth.
bool is_json(std::string_view text);

}  // namespace moka::files
