// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/output.h"

/// Small files that remember what was measured on this machine.
namespace moka::runtime {

/// Errors: not_found, io, malformed (more than 16 MiB).
Result<std::string> read_cache_file(const std::string& path);
/// Replaces a file of this kind at once; makes its folder. Errors: invalid_argument (it holds something else), io.
Status replace_cache_file(const std::string& path, OutputKind kind, std::string_view text);
/// The user's own: $XDG_CACHE_HOME/moka/`name`, or in ~/.cache. Error not_found, which names `what`: neither is set.
Result<std::string> users_cache_file(std::string_view name, std::string_view what);

}  // namespace moka::runtime
