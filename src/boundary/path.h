// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace moka::boundary {

/// The text of a path. Throws Exception invalid_argument where it contains a NUL byte, at which the system would cut
/// it.
const std::string& native(const std::filesystem::path& path);
std::vector<std::string> native(const std::vector<std::filesystem::path>& paths);

}  // namespace moka::boundary
