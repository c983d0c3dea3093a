// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace moka::cli {

/// A new folder that only its user can read, removed with the object. Throws IoError.
class TemporaryFolder {
 public:
  /// `purpose` becomes part of its name.
  explicit TemporaryFolder(const std::string& purpose,
                           const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace moka::cli
