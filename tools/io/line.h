// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Fits text into the width of a terminal. Widths count cells (io/utf8.h).
namespace moka::io {

/// No limit, as for a pipe or a file.
inline constexpr size_t kAnyWidth = static_cast<size_t>(-1);

/// The cells of a line of `stream`: COLUMNS, else the terminal's width, else 80. kAnyWidth if it is not a terminal.
size_t line_width(std::FILE* stream);

/// At most `cells`; an ellipsis replaces the end.
std::string shortened(std::string_view text, size_t cells);
/// As above, but the ellipsis replaces the middle, so that both ends of a name stay.
std::string middle_shortened(std::string_view text, size_t cells);
/// Lines of at most `cells`, broken at spaces, or inside a word that is longer than a line. At least one line.
std::vector<std::string> wrapped(std::string_view text, size_t cells);

/// How a column of a table shrinks when the line is too short.
enum class Shrink : unsigned char {
  keep,    ///< keeps its width
  end,     ///< cells lose their ends
  middle,  ///< cells lose their middles
  wrap,    ///< cells take several lines
  drop,    ///< is left out; the last such column goes first
};

struct ColumnWidth {
  size_t wanted;  ///< width of the widest cell
  size_t least;   ///< minimum width
  Shrink shrink;
};

/// The widths of columns with `gap` cells between them in a line of `limit` cells; 0: left out. The widest columns
/// shrink first, but never below their minimum, so the sum can exceed the limit.
std::vector<size_t> fitted(std::span<const ColumnWidth> columns, size_t gap, size_t limit);

}  // namespace moka::io
