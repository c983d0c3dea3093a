// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "format/model_folder.h"
#include "format/weights/blob.h"

namespace moka::format {

/// The weight files that a model may refer to. A file is mapped on first use and stays mapped as long as the store
/// lives. Copies share the files. Thread-safe.
class WeightStore {
 public:
  /// No files.
  WeightStore();
  /// Names are relative to `base`, the place of the model file's folder. The store never opens a file outside `folder`,
  /// not even through a symbolic link.
  static WeightStore in_folder(ModelFolder folder, std::string base);
  /// The same for folders on disk, which must exist.
  static Result<WeightStore> in_folder(const std::string& root, const std::string& base);
  /// Names are the keys, such as "weights/weight.bin". Bytes that are not 16-byte aligned are copied.
  static WeightStore in_memory(std::map<std::string, Bytes> files);

  /// `name` as a program writes it, without the prefix "@model_path/".
  static std::string_view relative_name(std::string_view name);

  /// The file `name` as a program writes it: "@model_path/weights/weight.bin", or without the prefix. Errors: malformed
  /// (absolute or leaving the package), not_found, io.
  Result<Bytes> file(std::string_view name) const;
  /// Errors: those of file and read_blob, with the name of the file.
  Result<Blob> blob(std::string_view name, uint64_t offset) const;

  /// While the result lives, `blob` reads the files instead of their mappings and copies small blobs, because touching
  /// a page brings its neighbors into memory.
  std::shared_ptr<const void> read_files() const;

 private:
  struct Rep;
  std::shared_ptr<Rep> rep_;
};

}  // namespace moka::format
