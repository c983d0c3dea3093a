// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "ir/program.h"

namespace moka::plan {

/// The values that replace the initial ones of parameters, by the results of `moka_parameter`. They have its type.
using ParameterValues = std::unordered_map<const ir::Value*, ir::Tensor>;

/// The tensor of a constant or a parameter that exists without computing anything; else nullptr.
const ir::Tensor* held_tensor(const ir::Value& value, const ParameterValues& parameters);

}  // namespace moka::plan
