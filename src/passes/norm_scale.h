// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "passes/pass.h"

namespace moka::passes {

/// Folds `op`, a multiplication of a normalization's result by a constant or a parameter or an addition of one, into
/// the normalization's gamma or beta, and erases it. `norm_type`: the type of the normalization. `axis_of`: the axis
/// that gamma and beta run along; the numbers must be broadcast along all others.
Status take_scale(PassContext& c, ir::Op& op, std::string_view norm_type,
                  const std::function<std::optional<int64_t>(const ir::Op&)>& axis_of);

}  // namespace moka::passes
