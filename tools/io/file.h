// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace moka::io {

using Bytes = std::vector<std::byte>;

/// The whole file. Throws IoError when it cannot be read or is not a regular file.
Bytes read_file(const std::filesystem::path& path);
/// The same, also from a pipe such as that of the shell's <(command).
std::string read_text(const std::filesystem::path& path);

/// Replaces whatever file is there. For files that the program itself makes; commands write through cli::Outputs.
/// Throws IoError when not every byte can be written.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace moka::io
