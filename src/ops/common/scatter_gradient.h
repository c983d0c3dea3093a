// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/gradient.h"

namespace moka::ops {

/// The gradient of scatter, scatter_nd or scatter_along_axis. `gather` is the operation that reads where it writes.
void gradient_of_scatter(ir::Gradient& g, std::string_view gather);

}  // namespace moka::ops
