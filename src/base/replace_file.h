#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace moka {

/// Writes the concatenated parts to `path` and makes its folder if necessary. Readers see either the old or the new
/// content. Several processes may replace the same file at the same time. `sync`: the content survives a crash of the
/// machine. A killed process leaves an unfinished file beside `path`. Error io.
Status replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts, bool sync);

/// The name of the file that the unfinished file `name` was meant to replace; empty for other files.
std::string_view replaced_by_unfinished(std::string_view name);

}  // namespace moka
