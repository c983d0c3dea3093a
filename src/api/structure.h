#pragma once

#include "import/importer.h"
#include "moka/model_structure.h"

namespace moka::api {

/// What `file` says it consists of. Errors: those of importing, for the programs inside.
Result<ModelStructure> structure_of(const format::ModelFile& file, const import::ImportOptions& options);
/// The functions of a program.
std::vector<ModelStructure::Function> functions_of(const ir::Program& program);

}  // namespace moka::api
