#pragma once

#include "ops/common/common.h"

namespace moka::ops {

/// The error of a value that is not among the constant strings or integers `keys`; it names the first of these.
Error unknown_category(const OpCall& call, std::string_view keys, const TensorView& x, int64_t i);

}  // namespace moka::ops
