#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace moka::io {

/// Appends one character; false (and nothing appended) for surrogates and values past U+10FFFF.
bool append_utf8(std::string& out, char32_t character);

/// The characters of a text; each byte that isn't valid UTF-8 becomes U+FFFD.
std::vector<char32_t> decode_utf8(std::string_view text);

/// Terminal cells that a text takes: East Asian wide characters two, combining marks and ANSI colour sequences none.
size_t display_width(std::string_view text);

}  // namespace moka::io
