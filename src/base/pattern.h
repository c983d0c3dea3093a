// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace moka {

/// Whether `text` matches `pattern`, in which each "*" stands for any text.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace moka
