#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace moka {

/// Replaces the file at `path`, or makes it and its folder: readers find either the old or the new content, the parts
/// one after another. Processes may replace the same file at the same time. `sync`: the content survives a crash of the
/// machine. A process that is killed leaves an unfinished file beside `path`. Error io.
Status replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts, bool sync);

/// The name of the file that an unfinished file was to replace; empty for other names.
std::string_view replaced_by_unfinished(std::string_view name);

}  // namespace moka
