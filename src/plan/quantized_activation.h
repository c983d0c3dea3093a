// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/program.h"
#include "kernel/stored.h"

namespace moka::plan {

/// What the operations that produce `value` guarantee about its elements; nullopt: nothing.
std::optional<kernel::QuantizedActivation> quantized_activation_of(const ir::Value& value);

}  // namespace moka::plan
