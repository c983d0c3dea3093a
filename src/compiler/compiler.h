// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/bytes.h"
#include "format/model_file.h"
#include "import/description.h"

/// Compiles specifications into the files of compiled models, described in docs/compiled-models.md.
namespace moka::compiler {

/// By name, relative to the folder.
using Files = std::map<std::string, Bytes>;

/// A neural network that keeps its specification, because no compiled form of a part is known. Only Moka reads that.
struct Embedded {
  std::string model;        ///< its folder in the compiled model, "model0/model1"; empty: the model itself
  std::string layer, type;  ///< a layer's name and the Core ML name of its type; empty: it is not about one layer
  std::string reason;       ///< what has no known form: "weights that are neither float32 nor float16"

  /// A sentence for the user.
  std::string text() const;
};

struct Options {
  bool espresso = true;                       ///< write neural networks in espresso form where that is possible
  bool strict = false;                        ///< error unsupported if a network must keep its specification
  std::vector<Embedded>* embedded = nullptr;  ///< receives the networks that keep theirs, unless `espresso` is false
};

/// Compiles `file`. `name`: the model's name, which determines the generated class. Needs no implementation of what
/// only the application or Apple's systems have. Errors: those of importing the model; invalid_argument when it is
/// already compiled; unsupported (strict).
Result<Files> compile(const format::ModelFile& file, const std::string& name, const Options& options = {});

/// The content of the model's metadata.json: the file's own if the compiled model has one, otherwise generated.
Result<nlohmann::json> metadata_of(const format::ModelFile& file, const std::string& name);

/// The description for generated code. `core_ml`: code for Apple's framework, where inputs are optional as in the file.
/// Moka also lets the thresholds of detectors be absent.
Result<import::ModelDescription> interface_of(const format::ModelFile& file, bool core_ml);

}  // namespace moka::compiler
