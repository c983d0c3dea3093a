// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "editing/features.h"

namespace moka::editing {

/// Makes the model replace an input x by (x - mean) / std before it computes anything else. `mean` and `std` have one
/// number, or one per channel. The channels of an array are the axis with as many elements as there are numbers; `axis`
/// chooses another axis. Programs get the operations `sub` and `real_div`, networks a layer `scale`. Errors: not_found,
/// invalid_argument (numbers that do not fit the input, a std of zero), unsupported (other kinds of models).
Status normalize(Message model, std::string_view input, const std::vector<double>& mean, const std::vector<double>& std,
                 std::optional<int> axis);

}  // namespace moka::editing
