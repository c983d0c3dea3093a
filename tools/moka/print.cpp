// SPDX-License-Identifier: Apache-2.0
#include "print.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "io/utf8.h"

namespace moka::cli {

namespace {

std::atomic<int> output_error = 0;

void remember_failure() {
  int none = 0;
  output_error.compare_exchange_strong(none, errno);
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) remember_failure();
}

int flush_output() {
  if (std::fflush(stdout) != 0) remember_failure();
  return output_error;
}

void note(std::string_view command, std::string_view text) {
  std::string line;  // one line of valid UTF-8, even if a message quotes arbitrary bytes of a file
  for (const char32_t c : io::decode_utf8(text)) io::append_utf8(line, c == '\n' || c == '\r' ? U' ' : c);
  flush_output();
  std::fputs(fmt::format("moka{}{}: {}\n", command.empty() ? "" : " ", command, line).c_str(), stderr);
}

bool color_output() {
  static const bool on = io::use_color(stdout);
  return on;
}

std::string bold(std::string_view text) { return io::painted(text, io::Color::bold, color_output()); }
std::string dim(std::string_view text) { return io::painted(text, io::Color::dim, color_output()); }

size_t line_width() {
  static const size_t width = io::line_width(stdout);
  return width;
}

std::string table_text(const io::Table& table) { return table.render(color_output(), line_width()); }

std::string fact(std::string_view label, std::string_view value) {
  constexpr size_t kIndent = 12;
  const std::string name = fmt::format("{:<{}}", label, kIndent);
  return dim(name.back() == ' ' ? name : name + ' ') + paragraph(value, kIndent).substr(kIndent);
}

std::string paragraph(std::string_view text, size_t indent) {
  const size_t width = line_width();
  std::string out;
  for (const std::string& line :
       io::wrapped(text, width == io::kAnyWidth ? width : width - std::min(indent, width / 2)))
    out += std::string(indent, ' ') + line + "\n";
  return out;
}

}  // namespace moka::cli
