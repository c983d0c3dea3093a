// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace moka::io {

/// Appends one character. Returns false and appends nothing for surrogates and values above U+10FFFF.
bool append_utf8(std::string& out, char32_t character);

/// The characters of a text. Each invalid byte becomes U+FFFD.
std::vector<char32_t> decode_utf8(std::string_view text);

/// Terminal cells of a text: two for East Asian wide characters, none for combining marks and ANSI color sequences.
size_t display_width(std::string_view text);

}  // namespace moka::io
