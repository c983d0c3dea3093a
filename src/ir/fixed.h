// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace moka::ir {

/// Whether the value is the same for every input: a constant, a parameter, or operations on these alone.
bool is_fixed(const Value& value);
/// Whether a fixed value is made from a parameter, so that it may change from one prediction to the next.
bool is_from_parameter(const Value& value);

}  // namespace moka::ir
