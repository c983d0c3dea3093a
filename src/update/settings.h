// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <variant>

#include "import/update/update.h"

namespace moka::update {

using Setting = std::variant<int64_t, double, bool>;
/// By Core ML's keys.
using Settings = std::map<std::string, Setting, std::less<>>;

/// "0.1", "true"
std::string to_text(const Setting& setting);

/// Sets values that the model describes. A whole number may stand for a real one and the reverse, 0 and 1 for a flag.
/// Errors: invalid_argument, which lists the parameters of the model, or names what is allowed; `settings` is
/// unchanged.
Status change_settings(Settings& settings, const Settings& changes, const import::UpdateDescription& update);
/// The model's defaults.
Settings default_settings(const import::UpdateDescription& update);

}  // namespace moka::update
