// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/importer.h"

namespace moka::import {

/// Imports the ML program of `file`, from its messages or, for a compiled model, its text. The inputs of each function
/// are named after its features; outputs follow the order of the description. Errors: malformed, unsupported,
/// not_found.
Result<ir::Program> import_program(const format::ModelFile& file, const ImportOptions& options,
                                   const ModelDescription& description);
/// As above, for a model inside `file`.
Result<ir::Program> import_program(const proto::Model& model, const format::ModelFile& file,
                                   const ImportOptions& options, const ModelDescription& description);

}  // namespace moka::import
