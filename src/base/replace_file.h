// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/output.h"

namespace moka {

/// The path of the file to which the symbolic links at `path` lead, or `path`; the file may be absent. Error io.
Result<std::string> link_target(const std::string& path);

/// A file that appears under its name when it is complete. Several processes may replace the same file at the same
/// time. Devices and pipes are written directly.
class FileReplacement {
 public:
  /// Follows symbolic links, makes the folder if necessary and begins an unfinished file there, which the destructor
  /// removes. The file keeps its permissions; only its owner can read an identity. Errors: invalid_argument (as
  /// check_output), io.
  static Result<FileReplacement> begin(const std::string& path, OutputKind kind, bool force = false,
                                       const std::vector<std::string>& inputs = {});
  ~FileReplacement();
  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;
  Status add(std::span<const std::byte> bytes);
  /// `sync`: the content survives a crash of the machine. Error io.
  Status finish(bool sync);

 private:
  FileReplacement() = default;
  std::string path_, made_;  ///< made_ is empty for devices and pipes
  int file_ = -1;
};

/// Writes the concatenated parts to `path` and makes its folder if necessary. Readers see either the old or the new
/// content. A killed process leaves an unfinished file beside `path`. Errors as FileReplacement::begin.
Status replace_file(const std::string& path, OutputKind kind, std::span<const std::span<const std::byte>> parts,
                    bool sync, bool force = false);

/// The name of the file that the unfinished file `name` was meant to replace; empty for other files.
std::string_view replaced_by_unfinished(std::string_view name);

}  // namespace moka
