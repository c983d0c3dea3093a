#pragma once

#include "import/importer.h"

namespace moka::import {

/// The ML program of `file`, from its messages or, for a compiled model, its text. Inputs of each function are called
/// like its features; outputs are in the order of the description. Errors: malformed, unsupported, not_found.
Result<ir::Program> import_program(const format::ModelFile& file, const ImportOptions& options,
                                   const ModelDescription& description);
/// As above, for a model inside `file`.
Result<ir::Program> import_program(const proto::Model& model, const format::ModelFile& file,
                                   const ImportOptions& options, const ModelDescription& description);

}  // namespace moka::import
