// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace moka::format {

/// The files of a package or compiled model: a folder of the file system, or files in memory. Copies share the files.
class ModelFolder {
 public:
  /// Errors: not_found, io.
  static Result<ModelFolder> on_disk(const std::string& path);
  /// By name, relative to the folder.
  static ModelFolder in_memory(std::map<std::string, Bytes> files);

  /// A place in the folder, as resolve() returns it.
  const std::string& root() const { return root_; }
  /// The place of `relative`, seen from the place `base`. Errors: malformed (also a path that leaves the folder),
  /// not_found, io.
  Result<std::string> resolve(const std::string& base, std::string_view relative) const;
  bool is_folder(const std::string& place) const;
  /// The content of the file at a place. Errors: not_found, io.
  Result<Bytes> read(const std::string& place) const;
  /// The folder that contains `place`; empty: `place` has none.
  static std::string parent(const std::string& place);

 private:
  std::string root_;  ///< on disk: a real path; in memory: empty
  std::shared_ptr<const std::map<std::string, Bytes>> files_;
};

}  // namespace moka::format
