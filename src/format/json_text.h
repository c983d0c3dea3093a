// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/bytes.h"

namespace moka::format {

/// Parses JSON text whose root is an object. `what` names the text in errors. Errors: malformed (not an object, or
/// nested deeper than `max_depth`).
Result<nlohmann::json> parse_json_object(const Bytes& text, std::string_view what, int max_depth);

}  // namespace moka::format
