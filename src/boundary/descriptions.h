// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/description.h"
#include "ir/dtype.h"
#include "moka/description.h"

namespace moka::import {
struct UpdateDescription;
}

namespace moka::boundary {

/// Core ML's name of an element type: "Float32", "Int32".
std::string_view core_ml_name(DataType type);
ir::DType to_ir(DataType type);
/// Errors: unsupported for element types that no multi-array has.
Result<DataType> from_ir(ir::DType type);
ModelDescription to_public(const import::ModelDescription& description);
FunctionDescription to_public(const import::FunctionDescription& function);
FeatureDescription to_public(const import::FeatureDescription& feature);
UpdateDescription to_public(const import::UpdateDescription& update);

}  // namespace moka::boundary
