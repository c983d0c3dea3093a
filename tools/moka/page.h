// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.h"

namespace moka::cli {

/// `page` with JSON in the place of `mark`, which stands in a script element.
std::string with_data(std::string page, const std::string& mark, const Json& data);

}  // namespace moka::cli
