// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/common/common.h"

namespace moka::ops {

/// The error for a value that is not among the constant strings or integers `keys`. Names the first of these values.
Error unknown_category(const OpCall& call, std::string_view keys, const TensorView& x, int64_t i);

}  // namespace moka::ops
