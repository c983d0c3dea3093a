// SPDX-License-Identifier: Apache-2.0
#include "io/table.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "io/io_error.h"
#include "io/utf8.h"

namespace moka::io {
namespace {

/// An optional sign, digits, then any characters of written numbers: 1,234 5.0e-3 12% 3.1 ms.
bool looks_numeric(std::string_view cell) {
  while (cell.starts_with("\x1b[")) {
    const size_t end = cell.find('m');
    if (end == std::string_view::npos) return false;
    cell.remove_prefix(end + 1);
  }
  if (cell.starts_with("\u2212"))
    cell.remove_prefix(3);
  else if (cell.starts_with('-') || cell.starts_with('+'))
    cell.remove_prefix(1);
  if (cell.starts_with('.')) cell.remove_prefix(1);
  if (cell.starts_with("inf") || cell.starts_with("nan")) return true;
  if (cell.empty() || cell[0] < '0' || cell[0] > '9') return false;
  const size_t digits = cell.find_first_not_of("0123456789.,_eE+-");
  if (digits == std::string_view::npos) return true;
  const std::string_view unit = cell.substr(digits);
  return unit[0] == ' ' || unit[0] == '%' || unit[0] == '\x1b';
}

}  // namespace

bool use_color(std::FILE* stream) {
  const char* refused = std::getenv("NO_COLOR");
  return !(refused && *refused) && isatty(fileno(stream));
}

std::string painted(std::string_view text, Color color, bool on) {
  if (!on || color == Color::none) return std::string(text);
  constexpr const char* kCodes[] = {"0", "1", "2", "31", "32", "33", "34"};
  return std::string("\x1b[") + kCodes[static_cast<size_t>(color)] + "m" + std::string(text) + "\x1b[0m";
}

namespace {

std::vector<Table::Column> columns_of(std::vector<std::string> header, std::vector<Align> align) {
  align.resize(header.size(), Align::automatic);
  std::vector<Table::Column> out;
  for (size_t c = 0; c < header.size(); ++c) out.emplace_back(std::move(header[c]), align[c]);
  return out;
}

/// The lines that a cell takes in a column of `width`.
std::vector<std::string> lines_of(const std::string& cell, Shrink shrink, size_t width) {
  switch (shrink) {
    case Shrink::end: return {shortened(cell, width)};
    case Shrink::middle: return {middle_shortened(cell, width)};
    case Shrink::wrap: return wrapped(cell, width);
    default: return {cell};
  }
}

/// Control characters of foreign texts would move the cursor or change the terminal: "\x1b".
std::string without_controls(std::string text) {
  const auto is_control = [](unsigned char c, unsigned char next) {
    return c < ' ' || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0);
  };
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (!is_control(c, next)) {
      out += text[i];
      continue;
    }
    const unsigned char shown = c == 0xc2 ? next : c;
    i += c == 0xc2 ? 1 : 0;
    out += "\\x";
    for (const int digit : {shown >> 4, shown & 15}) out += "0123456789abcdef"[digit];
  }
  return out;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

Table::Table(std::vector<std::string> header, std::vector<Align> align)
    : Table(columns_of(std::move(header), std::move(align))) {}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() > columns_.size())
    fail("table", "expected at most ", columns_.size(), " cells in a row, got ", cells.size());
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = without_controls(std::move(cell));
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

namespace {

constexpr size_t kGap = 2;  ///< between columns

bool is_numeric(const std::vector<std::vector<std::string>>& rows, size_t column) {
  bool any = false;
  for (const auto& row : rows) {
    if (row.empty() || row[column].empty() || row[column] == "-") continue;
    if (!looks_numeric(row[column])) return false;
    any = true;
  }
  return any;
}

/// Writes rows of a table whose columns have these widths; those without a width are left out.
class Lines {
 public:
  Lines(std::vector<size_t> width, std::vector<bool> right, bool color)
      : width_(std::move(width)), right_(std::move(right)), color_(color) {}

  /// `cells`: the lines of each cell.
  void row(const std::vector<std::vector<std::string>>& cells, const std::vector<Color>& colors) {
    size_t height = 1;
    for (const auto& cell : cells) height = std::max(height, cell.size());
    for (size_t i = 0; i < height; ++i) {
      std::string line, gap;
      for (size_t c = 0; c < width_.size(); ++c) {
        if (width_[c] == 0) continue;
        const std::string& cell = i < cells[c].size() ? cells[c][i] : std::string();
        const size_t have = display_width(cell);
        const std::string space(width_[c] > have ? width_[c] - have : 0, ' ');
        const std::string shown = painted(cell, colors[c], color_ && !cell.empty());
        line += gap + (right_[c] ? space + shown : shown + space);
        gap = std::string(kGap, ' ');
      }
      text(std::move(line));
    }
  }
  void rule() {
    std::string line, gap;
    for (const size_t width : width_) {
      if (width == 0) continue;
      line += gap;
      for (size_t i = 0; i < width; ++i) line += "\u2500";
      gap = std::string(kGap, ' ');
    }
    text(painted(line, Color::dim, color_ && !line.empty()));
  }
  void text(std::string line) {
    line.resize(line.find_last_not_of(' ') + 1);
    out_ += line + '\n';
  }
  size_t width(size_t column) const { return width_[column]; }
  std::string take() { return std::move(out_); }

 private:
  std::vector<size_t> width_;
  std::vector<bool> right_;
  bool color_;
  std::string out_;
};

}  // namespace

std::string Table::render(bool color, size_t limit) const {
  constexpr size_t kLeast = 12, kLeastWrapped = 20, kIndent = 4;
  const size_t columns = columns_.size();
  std::vector<ColumnWidth> wanted(columns);
  std::vector<bool> right(columns);
  std::vector<Color> colors(columns);
  std::vector<std::vector<std::string>> titles(columns);
  for (size_t c = 0; c < columns; ++c) {
    const Column& column = columns_[c];
    size_t width = display_width(column.title);
    const size_t least = std::max(width, column.shrink == Shrink::wrap ? kLeastWrapped : kLeast);
    bool any = false;
    for (const auto& row : rows_) {
      if (row.empty()) continue;
      width = std::max(width, display_width(row[c]));
      any |= !row[c].empty() && row[c] != "-";
    }
    // A column without a title keeps the width of its cells.
    wanted[c] = {any || !column.title.empty() ? width : 0, least, column.shrink};
    right[c] = column.align == Align::right || (column.align == Align::automatic && is_numeric(rows_, c));
    colors[c] = column.color;
    titles[c] = {column.title};
  }
  std::vector<size_t> width = fitted(wanted, kGap, limit);
  size_t total = 0;
  for (const size_t w : width) total += w > 0 ? w + kGap : 0;
  // When a last column of long texts has no room, its texts stand below the rows, in separate lines.
  const bool below =
      limit != kAnyWidth && total > limit + kGap && columns > 1 && columns_.back().shrink == Shrink::wrap;
  if (below) {
    wanted.back() = {0, 0, Shrink::keep};
    width = fitted(wanted, kGap, limit);
  }
  Lines lines(std::move(width), std::move(right), color);
  lines.row(titles, std::vector<Color>(columns, Color::bold));
  lines.rule();
  for (const auto& row : rows_) {
    if (row.empty()) {
      lines.rule();
      continue;
    }
    std::vector<std::vector<std::string>> cells(columns);
    for (size_t c = 0; c < columns; ++c)
      if (lines.width(c) > 0) cells[c] = lines_of(row[c], columns_[c].shrink, lines.width(c));
    lines.row(cells, colors);
    if (!below || row.back().empty()) continue;
    for (const std::string& line : wrapped(columns_.back().title + ": " + row.back(), limit - kIndent))
      lines.text(std::string(kIndent, ' ') + line);
  }
  return lines.take();
}

Progress::Progress(std::string label, size_t total)
    : label_(std::move(label)), total_(total), terminal_(isatty(fileno(stderr))) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void Progress::advance(size_t steps) {
  done_ += steps;
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now - start_ < std::chrono::seconds(1) || now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  visible_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::fputs(("\r" + line(label_, done_, total_, seconds) + "\x1b[K").c_str(), stderr);
  std::fflush(stderr);
}

std::string Progress::line(std::string_view label, size_t done, size_t total, double seconds) {
  std::string text(label);
  if (total == 0) return text + "  " + std::to_string(done);
  constexpr size_t kBar = 20;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<size_t>(part * kBar);
  text += "  [" + std::string(filled, '#') + std::string(kBar - filled, '-') + "]  ";
  text += std::to_string(static_cast<int>(part * 100)) + "%";
  if (part > 0 && part < 1)
    text += "  " + std::to_string(std::lround(std::ceil(seconds * (1 - part) / part))) + " s left";
  return text;
}

}  // namespace moka::io
