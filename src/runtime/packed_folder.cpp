// SPDX-License-Identifier: Apache-2.0
#include "runtime/packed_folder.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>

#include "base/output_kind.h"
#include "base/replace_file.h"
#include "runtime/model_content.h"

namespace moka::runtime {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCodeEnding = ".pipelines";
constexpr uintmax_t kMostPacked = uintmax_t{8} << 30;  // limit per folder
constexpr std::chrono::hours kLongestWrite{1};         // older unfinished files belong to processes that were killed

std::optional<OutputKind> kind_of(std::string_view name) {
  if (name.ends_with(kPackedEnding)) return OutputKind::packed_weights;
  if (name.ends_with(kCodeEnding)) return OutputKind::pipelines;
  if (name.ends_with(kContentEnding)) return OutputKind::digests;
  return std::nullopt;
}

}  // namespace

std::vector<PackedFile> packed_files(const std::string& folder) {
  std::vector<PackedFile> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const std::string file_name = it->path().filename().string();
    const std::string_view replaced = replaced_by_unfinished(file_name);
    const auto kind = kind_of(replaced.empty() ? file_name : replaced);
    if (!kind || !it->is_regular_file(gone)) continue;
    if (replaced.empty() && !holds(it->path().string(), *kind)) continue;
    PackedFile f{it->path(), it->file_size(gone), it->last_write_time(gone), !replaced.empty()};
    if (!gone) out.push_back(std::move(f));
  }
  return out;
}

void trim_packed(const std::string& folder, const std::string& kept) {
  std::vector<PackedFile> files = packed_files(folder);
  const auto is_left = [](const PackedFile& f) {
    std::error_code error;
    return f.unfinished && f.used < fs::file_time_type::clock::now() - kLongestWrite && fs::remove(f.path, error);
  };
  std::erase_if(files, is_left);
  std::sort(files.begin(), files.end(), [](const PackedFile& a, const PackedFile& b) { return a.used < b.used; });
  uintmax_t bytes = 0;
  for (const PackedFile& f : files) bytes += f.bytes;
  for (const PackedFile& f : files) {
    if (bytes <= kMostPacked) return;
    if (f.unfinished || f.path.filename() == fs::path(kept).filename()) continue;
    std::error_code error;
    if (fs::remove(f.path, error)) bytes -= f.bytes;
  }
}

}  // namespace moka::runtime
