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

/// Compiles `file`. `name`: the model's name, which determines the generated class. `espresso`: write neural networks
/// in espresso form if all layers have a known compiled form. Errors: those of importing the model; invalid_argument
/// when it is already compiled.
Result<Files> compile(const format::ModelFile& file, const std::string& name, bool espresso = true);

/// The content of the model's metadata.json: the file's own if the compiled model has one, otherwise generated.
Result<nlohmann::json> metadata_of(const format::ModelFile& file, const std::string& name);

/// The description for generated code. `core_ml`: code for Apple's framework, where inputs are optional as in the file.
/// Moka also lets the thresholds of detectors be absent.
Result<import::ModelDescription> interface_of(const format::ModelFile& file, bool core_ml);

}  // namespace moka::compiler
