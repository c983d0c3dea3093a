#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Text in the width of a terminal. Widths count cells (io/utf8.h).
namespace moka::io {

/// No limit: what a pipe or a file gets.
inline constexpr size_t kAnyWidth = static_cast<size_t>(-1);

/// The cells of a line of `stream`: what COLUMNS says, else the terminal, else 80; kAnyWidth where it is not a
/// terminal.
size_t line_width(std::FILE* stream);

/// At most `cells`, with an ellipsis in place of the end that is left out.
std::string shortened(std::string_view text, size_t cells);
/// As above, but the ellipsis replaces the middle, so that both ends of a name stay.
std::string middle_shortened(std::string_view text, size_t cells);
/// Lines of at most `cells`, broken at spaces, or inside a word that is longer than a line. At least one line.
std::vector<std::string> wrapped(std::string_view text, size_t cells);

/// What a column of a table does in a line that is too short for it.
enum class Shrink : unsigned char {
  keep,    ///< stays as wide as it is
  end,     ///< cells lose their ends
  middle,  ///< cells lose their middles
  wrap,    ///< cells take several lines
  drop,    ///< is left out; the last such column first
};

struct ColumnWidth {
  size_t wanted;  ///< the widest cell
  size_t least;   ///< no narrower than this
  Shrink shrink;
};

/// The widths of columns with `gap` cells between them in a line of `limit` cells; 0: left out. The widest give most,
/// but none goes below its least, so the sum can exceed the limit.
std::vector<size_t> fitted(std::span<const ColumnWidth> columns, size_t gap, size_t limit);

}  // namespace moka::io
