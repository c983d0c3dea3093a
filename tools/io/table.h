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
bool use_colour(std::FILE* stream);

enum class Colour { none, bold, dim, red, green, yellow, blue };

/// The text between ANSI sequences when `on`, else as it is.
std::string painted(std::string_view text, Colour colour, bool on);

enum class Align { automatic, left, right };

/// An aligned table for a terminal. Columns of numbers are right-aligned unless told otherwise; widths count
/// terminal cells, so UTF-8 and cells that are already painted line up.
///
///   Table table({{"operation", Shrink::middle}, {"time", Align::right}, {"why", Shrink::wrap}});
///   table.add_row({"conv_1", "3.1 ms", "..."});
///   std::cout << table.render(colour, line_width(stdout));
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::automatic;
    Shrink shrink = Shrink::keep;  ///< cells that may be cut or wrapped must not be painted
    Colour colour = Colour::none;
    Column(std::string t, Align a = Align::automatic, Shrink f = Shrink::keep, Colour c = Colour::none)
        : title(std::move(t)), align(a), shrink(f), colour(c) {}
    Column(std::string t, Shrink f, Colour c = Colour::none) : Column(std::move(t), Align::left, f, c) {}
  };
  explicit Table(std::vector<Column> columns);
  explicit Table(std::vector<std::string> header, std::vector<Align> align = {});

  /// A row with fewer cells than the header is filled up with empty ones; more throw IoError.
  void add_row(std::vector<std::string> cells);
  /// A rule between the rows before and after.
  void add_rule();
  bool empty() const { return rows_.empty(); }

  /// Every line ends with a newline and has no trailing spaces. Colour: the header is bold, rules are dim, cells have
  /// their column's. `width`: of a line, which columns share as their Shrink says. A last column that wraps stands
  /// below its rows, after its title, where the others leave no room for it.
  std::string render(bool colour = false, size_t width = kAnyWidth) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

/// One line on standard error, "label  [#####-----]  50%  3 s left", shown only on a terminal and only once the work
/// has taken longer than a second; cleared at the end. One thread only.
class Progress {
 public:
  /// `total` 0 means unknown.
  Progress(std::string label, size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(size_t steps = 1);

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
