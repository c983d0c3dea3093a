#include "print.h"

#include <fmt/format.h>

#include <cstdio>

#include "io/table.h"

namespace moka::cli {

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void note(std::string_view command, std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (c == '\n' || c == '\r') c = ' ';
  std::fflush(stdout);
  std::fputs(fmt::format("moka{}{}: {}\n", command.empty() ? "" : " ", command, line).c_str(), stderr);
}

bool colour_output() {
  static const bool on = io::use_colour(stdout);
  return on;
}

std::string bold(std::string_view text) { return io::painted(text, io::Colour::bold, colour_output()); }
std::string dim(std::string_view text) { return io::painted(text, io::Colour::dim, colour_output()); }

std::string fact(std::string_view label, std::string_view value) {
  return dim(fmt::format("{:<12}", label)) + std::string(value) + "\n";
}

}  // namespace moka::cli
