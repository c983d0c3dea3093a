#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "moka/model.h"

namespace moka {

/// Compiles a model as coremlc does: makes the folder `destination` (X.mlmodelc, new or empty), which needs no other
/// file. The same model gives the same bytes. docs/compiled-models.md says what is written. Throws what Model::load
/// throws for a model that cannot run, invalid_argument (destination), io.
/// `espresso`: neural networks whose layers all have a known form there are written as model.espresso.*, as coremlc
/// writes them. Their batch norms are folded, so that answers differ by roundings. Else the specification is embedded.
MOKA_EXPORT void compile_model(const std::string& path, const std::string& destination, bool espresso = true);
MOKA_EXPORT void compile_model(const ModelAsset& asset, const std::string& destination);
MOKA_EXPORT void compile_model(const ModelAssetView& asset, const std::string& destination);

/// Writes what a compiled model was made from to `destination`, which must not exist: an .mlpackage folder, or the file
/// of an .mlmodel, which ML programs do not fit in. Neural networks have the layers and weights that were compiled, ML
/// programs the operations of model.mil. Throws what opening the model throws, invalid_argument (not a compiled model,
/// `destination`), io.
MOKA_EXPORT void decompile_model(const std::string& path, const std::string& destination);

/// The JSON of metadata.json: features, types, availability, operations, and what the author wrote. A compiled model
/// that has the file returns its content. Throws Exception: what opening the model throws.
MOKA_EXPORT std::string model_metadata(const std::string& path);

enum class Language : uint8_t { swift, objective_c, cpp, c, python };

struct InterfaceOptions {
  Language language = Language::cpp;
  std::string swift_version = "5";  ///< of Swift sources: from 6 on, protocols are written `any P`
  bool public_access = false;       ///< of Swift sources: usable from other modules
  bool global_module = false;       ///< of Swift sources: classes that Objective-C can use
};

/// The sources, by file name, of classes for a model's inputs and outputs and for loading it and predicting. Those in
/// Swift and Objective-C use Core ML, the others Moka. Throws Exception: what opening the model throws.
MOKA_EXPORT std::map<std::string, std::string> generate_interface(const std::string& path,
                                                                  const InterfaceOptions& options = {});

}  // namespace moka
