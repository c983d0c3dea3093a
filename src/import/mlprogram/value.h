// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace moka::format {
class ModelFile;
class WeightStore;
}  // namespace moka::format
namespace moka::proto::MILSpec {
class Value;
class ValueType;
}  // namespace moka::proto::MILSpec

namespace moka::import {

/// Errors: malformed, unsupported (rank).
Result<ir::Type> import_type(const proto::MILSpec::ValueType& type);

/// A constant of an ML program. Immediate values are copied and charged to `budget` (may be null); values in a weights
/// file of `file` stay in its mapping. Errors: malformed, and those of the weights.
Result<ir::Constant> import_value(const proto::MILSpec::Value& value, const format::ModelFile& file,
                                  MemoryBudget* budget);

/// The tensor of `type` at `offset` of the weights file `name`.
Result<ir::Tensor> import_blob(const format::WeightStore& weights, std::string_view name, uint64_t offset,
                               const ir::Type& type);

}  // namespace moka::import
