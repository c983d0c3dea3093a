#pragma once

#include <optional>
#include <string>
#include <vector>

#include "editing/features.h"

namespace moka::editing {

/// Lets the model compute (x - mean) / std of an input first. One number, or one per channel: of an image, or of the
/// axis of an array that has as many elements; `axis` chooses one. Programs get `sub` and `real_div`, networks a layer
/// `scale`. Errors: not_found, invalid_argument (numbers that do not fit the input, a std of zero), unsupported (other
/// kinds of models).
Status normalize(Message model, std::string_view input, const std::vector<double>& mean, const std::vector<double>& std,
                 std::optional<int> axis);

}  // namespace moka::editing
