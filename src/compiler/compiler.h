#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/bytes.h"
#include "format/model_file.h"
#include "import/description.h"

/// Specifications to compiled models, as files; docs/compiled-models.md describes them.
namespace moka::compiler {

/// By name relative to the folder.
using Files = std::map<std::string, Bytes>;

/// The files of `file` compiled. `name`: of the model, for the class that is generated from it.
/// Errors: those of importing the model; invalid_argument where it is compiled already.
/// `espresso`: neural networks whose layers all have a known compiled form are written in it.
Result<Files> compile(const format::ModelFile& file, const std::string& name, bool espresso = true);

/// What metadata.json of the model says: the file's own where it is a compiled model with one, else made.
Result<nlohmann::json> metadata_of(const format::ModelFile& file, const std::string& name);

/// The description for generated code: inputs are optional where the file says so.
Result<import::ModelDescription> interface_of(const format::ModelFile& file);

}  // namespace moka::compiler
