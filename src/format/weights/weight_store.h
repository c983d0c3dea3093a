#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "format/weights/blob.h"

namespace moka::format {

/// The weight files a model may refer to. Files are mapped at first use and stay mapped while the store lives.
/// Copies share. Thread-safe.
class WeightStore {
 public:
  /// No files.
  WeightStore();
  /// Names are relative to `base`, the folder of the model file; nothing outside `root` is ever opened, not even
  /// through a symbolic link. Both must exist; `base` is `root` or inside it.
  static Result<WeightStore> in_folder(const std::string& root, const std::string& base);
  /// Names are the keys, such as "weights/weight.bin". Bytes whose address is not a multiple of 16 are copied.
  static WeightStore in_memory(std::map<std::string, Bytes> files);

  /// `name` as a program writes it, without the prefix "@model_path/".
  static std::string_view relative_name(std::string_view name);

  /// `name` as a program writes it: "@model_path/weights/weight.bin", or without the prefix.
  /// Errors: malformed (absolute or leaving the package), not_found, io.
  Result<Bytes> file(std::string_view name) const;
  /// Errors: those of file and read_blob; they name the file.
  Result<Blob> blob(std::string_view name, uint64_t offset) const;

  /// While the result lives, `blob` reads the files and does not look at their mappings, and copies small blobs: each
  /// page that is looked at brings its neighbours into memory.
  std::shared_ptr<const void> read_files() const;

 private:
  struct Rep;
  std::shared_ptr<Rep> rep_;
};

}  // namespace moka::format
