#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace moka::cli {

/// The value of JSON text. Throws UsageError that begins with `where`: the text is not JSON (at which line and column,
/// and why), or nests deeper than any input does.
nlohmann::json parse_json(std::string_view text, const std::string& where);

/// Whether the text is valid JSON, at any nesting depth.
bool is_json(std::string_view text);

}  // namespace moka::cli
