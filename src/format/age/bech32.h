// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace moka::format::age {

/// Bech32 (BIP 173) without its limit of 90 characters: a prefix, '1', and bytes with a checksum of six characters.
/// `prefix` in lower case.
std::string bech32(std::string_view prefix, std::span<const unsigned char> bytes);

/// The bytes of a text in one letter case with this prefix, given in lower case. Errors: malformed.
Result<std::vector<unsigned char>> read_bech32(std::string_view text, std::string_view prefix);

}  // namespace moka::format::age
