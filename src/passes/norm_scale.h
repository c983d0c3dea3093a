#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "passes/pass.h"

namespace moka::passes {

/// Makes a product or a sum of a norm of type `norm_type` and a constant the norm's gamma or beta, and erases `op`. The
/// constant must have one number for each entry of the axis that `axis_of` returns for the norm.
void take_scale(PassContext& c, ir::Op& op, std::string_view norm_type,
                const std::function<std::optional<int64_t>(const ir::Op&)>& axis_of);

}  // namespace moka::passes
