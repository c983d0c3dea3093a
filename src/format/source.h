#pragma once

#include <string>

#include "format/message/message.h"
#include "format/write_files.h"

namespace moka::format {

/// What an .mlmodel file or an .mlpackage holds, to be changed and written. Nothing is read before it is needed.
struct ModelSource {
  Message specification;
  /// Weight files by path relative to the specification: "weights/weight.bin".
  FileContents weights = {};
  /// The other files of a package that was read, by path relative to the package.
  FileContents others = {};
  std::string place = {};  ///< of the specification in the package that was read; empty: none was read

  /// Errors: those of opening a model; invalid_argument (a compiled model).
  static Result<ModelSource> read(const std::string& path);
  /// Writes a package if `path` ends with .mlpackage, and else a file. What a package was read from keeps the names of
  /// its files. Errors: invalid_argument (the path does not fit the model, or holds other files), io, those of
  /// Message::serialize.
  Status write(const std::string& path) const;
};

/// The Pipeline message of a pipeline, pipelineClassifier or pipelineRegressor, added if it is absent. Error
/// invalid_argument for other models.
Result<Message> edit_pipeline(Message model);

}  // namespace moka::format
