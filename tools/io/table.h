// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "io/line.h"

namespace moka::io {

/// True when the stream is a terminal and the environment variable NO_COLOR is unset or empty.
bool use_color(std::FILE* stream);

enum class Color { none, bold, dim, red, green, yellow, blue };

/// The text between ANSI sequences when `on`, otherwise unchanged.
std::string painted(std::string_view text, Color color, bool on);

enum class Align { automatic, left, right };

/// An aligned table for a terminal. Columns of numbers are right-aligned by default. Widths count terminal cells, so
/// UTF-8 and colored cells align.
///
///   Table table({{"operation", Shrink::middle}, {"time", Align::right}, {"why", Shrink::wrap}});
///   table.add_row({"conv_1", "3.1 ms", "..."});
///   std::cout << table.render(color, line_width(stdout));
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::automatic;
    Shrink shrink = Shrink::keep;  ///< cells that may be cut or wrapped must not be colored
    Color color = Color::none;
    Column(std::string t, Align a = Align::automatic, Shrink f = Shrink::keep, Color c = Color::none)
        : title(std::move(t)), align(a), shrink(f), color(c) {}
    Column(std::string t, Shrink f, Color c = Color::none) : Column(std::move(t), Align::left, f, c) {}
  };
  explicit Table(std::vector<Column> columns);
  explicit Table(std::vector<std::string> header, std::vector<Align> align = {});

  /// A row with fewer cells than the header gets empty ones; more cells throw IoError.
  void add_row(std::vector<std::string> cells);
  /// A rule between the rows before and after.
  void add_rule();
  bool empty() const { return rows_.empty(); }

  /// Every line ends with a newline and has no trailing spaces. Color: the header is bold, rules are dim, cells have
  /// the color of their column. `width`: of a line, which the columns share according to their Shrink. If the other
  /// columns leave no room for a last column that wraps, it stands below its rows, after its title.
  std::string render(bool color = false, size_t width = kAnyWidth) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

/// A line on standard error, "label  [#####-----]  50%  3 s left". It appears only on a terminal and only when the work
/// takes longer than a second, and is cleared at the end. For one thread only.
class Progress {
 public:
  /// `total` 0 means unknown.
  Progress(std::string label, size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(size_t steps = 1);
  /// Another label, from the next time on that the line is shown.
  void relabel(std::string label) { label_ = std::move(label); }

  /// The line's text, without control sequences.
  static std::string line(std::string_view label, size_t done, size_t total, double seconds);

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  size_t total_, done_ = 0;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
  bool terminal_, visible_ = false;
};

}  // namespace moka::io
