// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "editing/features.h"

namespace moka::editing {

/// Sets a text of the metadata: shortDescription, versionString, author, license, or userDefined with a key. An empty
/// text removes it. Error invalid_argument (another field).
Status set_metadata(Message model, std::string_view field, std::string_view key, const std::string& text);
/// Sets the description of the features with this name. Error not_found.
Status describe(Message model, std::string_view feature, const std::string& text);

}  // namespace moka::editing
