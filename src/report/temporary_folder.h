// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace moka::reporting {

/// A new folder that only its user can read, removed with the object. Throws Exception of kind io.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace moka::reporting
