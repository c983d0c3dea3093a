#pragma once

#include <string>

#include "moka/model.h"

namespace moka {

/// Compiles a model as coremlc does: makes the folder `destination` (X.mlmodelc, new or empty), which needs no other
/// file. The same model gives the same bytes. docs/compiled-models.md says what is written. Throws Exception: what
/// Model::load throws for a model that cannot run, invalid_argument (destination), io.
MOKA_EXPORT void compile_model(const std::string& path, const std::string& destination);
MOKA_EXPORT void compile_model(const ModelAsset& asset, const std::string& destination);

/// Writes the specification of a compiled model as the .mlmodel `destination`, which must not exist: neural networks
/// with the layers and weights that were compiled, classic models, pipelines of these. Throws Exception: what opening
/// the model throws, invalid_argument (not a compiled model, `destination`), unsupported (ML programs), io.
MOKA_EXPORT void decompile_model(const std::string& path, const std::string& destination);

/// The JSON of metadata.json: features, types, availability, operations, and what the author wrote. A compiled model
/// that has the file returns its content. Throws Exception: what opening the model throws.
MOKA_EXPORT std::string model_metadata(const std::string& path);

}  // namespace moka
