// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace moka::cli {

/// Parses JSON text. Throws UsageError that begins with `where` when the text is not JSON (with line, column and
/// reason), or is nested deeper than any input can be.
nlohmann::json parse_json(std::string_view text, const std::string& where);

/// Whether the text is valid JSON, at any nesting depth.
bool is_json(std::string_view text);

}  // namespace moka::cli
