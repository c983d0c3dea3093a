// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// A folder that keeps packed weights (ModelConfiguration::cache).
namespace moka::runtime {

constexpr std::string_view kPackedEnding = ".packed";

struct PackedFile {
  std::filesystem::path path;
  uintmax_t bytes = 0;
  std::filesystem::file_time_type used;
  bool unfinished = false;
};

/// The files that Moka wrote. Others stay, whatever their names are.
std::vector<PackedFile> packed_files(const std::string& folder);
/// Removes what killed processes left, and the least recently used files while the total exceeds 8 GiB. Never removes
/// `kept`.
void trim_packed(const std::string& folder, const std::string& kept);

}  // namespace moka::runtime
