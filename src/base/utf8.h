// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace moka {

/// Whether `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text);

/// Appends a character of at most U+10FFFF. Surrogates are encoded, too, which is not well-formed.
void append_utf8(std::string& out, char32_t character);

/// `text` if it has at most `most` bytes, otherwise as many of its characters as fit, and `mark`.
std::string shortened(std::string_view text, size_t most, std::string_view mark = "\u2026");

}  // namespace moka
