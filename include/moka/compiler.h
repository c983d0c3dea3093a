// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "moka/model.h"
#include "moka/output.h"

namespace moka {

/// A neural network that keeps its specification in the compiled model, because no compiled form of one of its parts is
/// known. Only Moka reads this form.
struct EmbeddedNetwork {
  std::string model;   ///< its folder in the compiled model ("model0"); empty: the model itself
  std::string layer;   ///< name of the layer; empty: the reason is not about one layer
  std::string type;    ///< the layer's type by Core ML's name: "uniDirectionalLSTM"
  std::string reason;  ///< what has no known form: "layers of this type"
  std::string text;    ///< all of that in a sentence
};

struct CompilationOptions {
  bool embed_specification = false;  ///< keep the specifications of all neural networks; none is reported
  bool strict = false;               ///< throw unsupported, and write nothing, if a network must keep its specification
  Overwrite overwrite = Overwrite::own_kind;
};

/// Compiles a model as coremlc does: writes the folder `destination` (X.mlmodelc), which is complete in itself. The
/// same model always gives the same bytes. docs/compiled-models.md describes the files. What only the
/// application or Apple's systems have, such as the class of a custom layer, is not needed. Throws what Model::load
/// throws for a model that cannot run, unsupported (strict), invalid_argument (destination), io.
///
/// A neural network whose layers have a known compiled form is written as model.espresso.*, as coremlc does. This folds
/// batch norms, so outputs differ by rounding errors. Returns the networks that keep their specification.
MOKA_EXPORT std::vector<EmbeddedNetwork> compile_model(const std::filesystem::path& path,
                                                       const std::filesystem::path& destination,
                                                       const CompilationOptions& options = {});
MOKA_EXPORT std::vector<EmbeddedNetwork> compile_model(const ModelAsset& asset,
                                                       const std::filesystem::path& destination,
                                                       const CompilationOptions& options = {});
MOKA_EXPORT std::vector<EmbeddedNetwork> compile_model(const ModelAssetView& asset,
                                                       const std::filesystem::path& destination,
                                                       const CompilationOptions& options = {});

/// Writes the source of a compiled model to `destination`: an .mlpackage folder, or an .mlmodel file for models other
/// than ML programs. A neural network gets its compiled layers and weights, an ML program the
/// operations of model.mil. Throws what opening the model throws, invalid_argument (not a compiled model,
/// `destination`), io.
MOKA_EXPORT void decompile_model(const std::filesystem::path& path, const std::filesystem::path& destination,
                                 Overwrite overwrite = Overwrite::own_kind);

/// The content of metadata.json: features, types, availability, operations, and the author's texts. A compiled model
/// that has the file returns it unchanged. Throws Exception: what opening the model throws.
MOKA_EXPORT std::string model_metadata(const std::filesystem::path& path);

enum class Language : uint8_t { swift, objective_c, cpp, c, python };

struct InterfaceOptions {
  Language language = Language::cpp;
  std::string swift_version = "5";  ///< version of Swift sources: from 6 on, protocols are written `any P`
  bool public_access = false;       ///< Swift sources: other modules can use the classes
  bool global_module = false;       ///< Swift sources: Objective-C can use the classes
};

/// Source files, by file name, of classes that hold a model's inputs and outputs, load it and predict. Swift and
/// Objective-C sources use Core ML, the others use Moka. Throws Exception: what opening the model throws.
MOKA_EXPORT std::map<std::string, std::string> generate_interface(const std::filesystem::path& path,
                                                                  const InterfaceOptions& options = {});

}  // namespace moka
