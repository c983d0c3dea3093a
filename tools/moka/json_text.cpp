// SPDX-License-Identifier: Apache-2.0
#include "json_text.h"

#include <fmt/format.h>

#include "moka/files.h"
#include "usage_error.h"

namespace moka::cli {

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  if (const auto fault = json_fault(text)) throw UsageError(fmt::format("{}: {}", where, *fault));
  return nlohmann::json::parse(text.begin(), text.end());
}

bool is_json(std::string_view text) { return nlohmann::json::accept(text.begin(), text.end()); }

}  // namespace moka::cli
