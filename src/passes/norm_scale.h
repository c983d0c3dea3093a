#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "passes/pass.h"

namespace moka::passes {

/// Moves a constant or a parameter that multiplies the result of a norm into the norm's gamma, or one that is added
/// into its beta, and erases the multiplication or addition `op`. `norm_type`: the type of the norm. `axis_of`: the
/// norm's axis, whose entries must have one number each in the constant.
Status take_scale(PassContext& c, ir::Op& op, std::string_view norm_type,
                  const std::function<std::optional<int64_t>(const ir::Op&)>& axis_of);

}  // namespace moka::passes
