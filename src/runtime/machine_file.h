// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

/// JSON files with a section for each machine: {"format": NAME, "version": N, "machines": [{...}, ...]}.
namespace moka::runtime {

using Json = nlohmann::ordered_json;

struct MachineFormat {
  std::string_view name;
  int version = 1;
};

/// The object of the file, whose "machines" is a list. Errors: malformed, unsupported (another version).
Result<Json> parse_machine_file(std::string_view text, const MachineFormat& format);
/// Error malformed: `object` has no string `key`.
Result<std::string> text_of(const Json& object, const char* key);

}  // namespace moka::runtime
