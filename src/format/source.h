// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "format/message/message.h"
#include "format/write_files.h"

namespace moka::format {

class ModelFile;
struct OpenOptions;

/// The content of an .mlmodel file or an .mlpackage, which can be changed and written. Parts are read when they are
/// needed.
struct ModelSource {
  Message specification;
  /// Weight files by path relative to the specification: "weights/weight.bin".
  FileContents weights = {};
  /// The other files of a package that was read, by path relative to the package.
  FileContents others = {};
  std::string place = {};  ///< of the specification in the package that was read; empty: none was read

  /// Errors: those of opening a model; invalid_argument (a compiled model).
  static Result<ModelSource> read(const std::string& path);
  /// The same for a model that is open.
  static Result<ModelSource> read(const ModelFile& file);
  /// Writes a package if `path` ends with .mlpackage, otherwise a file. A package that was read keeps the names of its
  /// files. Errors: invalid_argument (the path does not fit the model, or the folder has other files), io, those of
  /// Message::serialize.
  Status write(const std::string& path, bool force = false) const;
};

/// Each file in one piece.
std::map<std::string, Bytes> joined(const FileContents& files);
/// Opens the model that a specification and its weight files make. Errors: those of Message::serialize and
/// open_model_bytes.
Result<ModelFile> open_source(const Message& specification, const FileContents& weights, const OpenOptions& options);

/// The Pipeline message of a pipeline, pipelineClassifier or pipelineRegressor, added if it is absent. Error
/// invalid_argument for other models.
Result<Message> edit_pipeline(Message model);

}  // namespace moka::format
