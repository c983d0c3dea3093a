// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

#include "ops/common/common.h"

namespace moka::ops {

/// Begins an operation that improves weights by their gradient. `kept` are values of the weights' type that it also
/// renews, `numbers` scalars. The results are the new weights, then the new values of `kept`. Kernels may write each
/// element of a result over the same element of its input.
OpBuilder optimizer(std::string name, std::string doc, std::initializer_list<const char*> kept,
                    std::initializer_list<const char*> numbers);

}  // namespace moka::ops
