// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "moka/report.h"

namespace moka::reporting {

using Json = nlohmann::ordered_json;

Json report_json(const Report& report);
Json capture_json(const Capture& capture);
/// "invalid_argument".
std::string_view name_of(ErrorKind kind);
/// On one line. Invalid UTF-8 becomes U+FFFD.
std::string dumped(const Json& json);
/// Indents by two spaces and puts lists of numbers and texts on one line. Ends with a newline.
std::string rendered(const Json& json);

}  // namespace moka::reporting
