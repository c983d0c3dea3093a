// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/bytes.h"

namespace moka::format::age {

/// Whether the file is in age's text form, where spaces may come first.
bool is_armored(const Bytes& file);
/// The bytes of a file in text form. Errors: malformed (names the line).
Result<Bytes> read_armor(const Bytes& file);

}  // namespace moka::format::age
