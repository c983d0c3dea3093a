#pragma once

#include <string_view>

namespace moka::io {

/// The dots of a character: rows of five from the top, '#' or '.', divided by spaces; seven rows, nine where the
/// letter hangs below the line. Characters outside printable ASCII give an empty box.
std::string_view glyph(char character);

}  // namespace moka::io
