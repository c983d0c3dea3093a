#include "io/table.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "io/io_error.h"
#include "io/utf8.h"

namespace moka::io {
namespace {

/// Digits after an optional sign, then anything numbers are written with: 1,234 5.0e-3 12% 3.1 ms.
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

std::string padded(std::string_view cell, size_t width, bool right) {
  const size_t have = display_width(cell);
  const std::string space(width > have ? width - have : 0, ' ');
  return right ? space + std::string(cell) : std::string(cell) + space;
}

}  // namespace

bool use_colour(std::FILE* stream) {
  const char* refused = std::getenv("NO_COLOR");
  return !(refused && *refused) && isatty(fileno(stream));
}

std::string painted(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::none) return std::string(text);
  constexpr const char* kCodes[] = {"0", "1", "2", "31", "32", "33", "34"};
  return std::string("\x1b[") + kCodes[static_cast<size_t>(colour)] + "m" + std::string(text) + "\x1b[0m";
}

Table::Table(std::vector<std::string> header, std::vector<Align> align)
    : header_(std::move(header)), align_(std::move(align)) {
  align_.resize(header_.size(), Align::automatic);
}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() > header_.size()) {
    fail("table", "expected at most ", header_.size(), " cells in a row, got ", cells.size());
  }
  cells.resize(header_.size());
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

std::string Table::render(bool colour) const {
  const size_t columns = header_.size();
  std::vector<size_t> width(columns);
  std::vector<bool> right(columns);
  for (size_t c = 0; c < columns; ++c) {
    width[c] = display_width(header_[c]);
    bool numeric = true, any = false;
    for (const auto& row : rows_) {
      if (row.empty()) continue;
      width[c] = std::max(width[c], display_width(row[c]));
      if (row[c].empty() || row[c] == "-") continue;
      any = true;
      numeric &= looks_numeric(row[c]);
    }
    right[c] = align_[c] == Align::right || (align_[c] == Align::automatic && any && numeric);
  }
  std::string out;
  const auto put_line = [&](std::string line, Colour paint) {
    line.resize(line.find_last_not_of(' ') + 1);
    out += painted(line, paint, colour && !line.empty()) + '\n';
  };
  const auto put_row = [&](const std::vector<std::string>& row, Colour paint) {
    std::string line;
    for (size_t c = 0; c < columns; ++c) line += (c ? "  " : "") + padded(row[c], width[c], right[c]);
    put_line(std::move(line), paint);
  };
  const auto put_rule = [&] {
    std::string line;
    for (size_t c = 0; c < columns; ++c) {
      if (c) line += "  ";
      for (size_t i = 0; i < width[c]; ++i) line += "\u2500";
    }
    put_line(std::move(line), Colour::dim);
  };
  put_row(header_, Colour::bold);
  put_rule();
  for (const auto& row : rows_) {
    if (row.empty())
      put_rule();
    else
      put_row(row, Colour::none);
  }
  return out;
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
