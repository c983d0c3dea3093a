// SPDX-License-Identifier: Apache-2.0
#include "io/line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "io/utf8.h"

namespace moka::io {
namespace {

std::string encoded(std::u32string_view characters) {
  std::string out;
  for (const char32_t c : characters) append_utf8(out, c);
  return out;
}

std::u32string decoded(std::string_view text) {
  const std::vector<char32_t> characters = decode_utf8(text);
  return {characters.begin(), characters.end()};
}

size_t width_of(std::u32string_view characters) { return display_width(encoded(characters)); }

bool shrinks(Shrink shrink) { return shrink == Shrink::end || shrink == Shrink::middle || shrink == Shrink::wrap; }

}  // namespace

size_t line_width(std::FILE* stream) {
  constexpr size_t kUsual = 80, kLeast = 20;
  if (!isatty(fileno(stream))) return kAnyWidth;
  if (const char* columns = std::getenv("COLUMNS"))
    if (const long n = std::strtol(columns, nullptr, 10); n > 0) return std::max(kLeast, static_cast<size_t>(n));
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return std::max<size_t>(kLeast, size.ws_col);
}

std::string shortened(std::string_view text, size_t cells) {
  if (display_width(text) <= cells) return std::string(text);
  std::string out;
  size_t used = 0;
  for (const char32_t c : decode_utf8(text)) {
    std::string one;
    append_utf8(one, c);
    used += display_width(one);
    if (used >= cells) break;
    out += one;
  }
  return out + "…";
}

std::string middle_shortened(std::string_view text, size_t cells) {
  if (display_width(text) <= cells || cells < 4) return shortened(text, cells);
  const std::u32string characters = decoded(text);
  std::u32string_view head = characters, tail = characters;
  const size_t front = (cells - 1) / 3, back = cells - 1 - front;
  while (width_of(head) > front) head.remove_suffix(1);
  while (width_of(tail) > back) tail.remove_prefix(1);
  return encoded(head) + "…" + encoded(tail);
}

std::vector<std::string> wrapped(std::string_view text, size_t cells) {
  std::vector<std::string> lines;
  if (display_width(text) <= cells || cells == 0) return {std::string(text)};
  std::string line;
  size_t used = 0;
  const auto end_line = [&] {
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
    line.clear();
    used = 0;
  };
  for (size_t at = 0; at < text.size();) {
    // A word and the spaces after it.
    const size_t end = std::min(text.find_first_not_of(' ', std::min(text.find(' ', at), text.size())), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::string_view bare = word.substr(0, word.find_last_not_of(' ') + 1);
    at = end;
    if (used > 0 && used + display_width(bare) > cells) end_line();
    if (display_width(bare) <= cells) {
      line += word;
      used += display_width(word);
      continue;
    }
    for (const char32_t c : decode_utf8(word)) {
      std::string one;
      append_utf8(one, c);
      if (used + display_width(one) > cells) end_line();
      if (used == 0 && c == ' ') continue;
      line += one;
      used += display_width(one);
    }
  }
  if (!line.empty()) end_line();
  return lines;
}

std::vector<size_t> fitted(std::span<const ColumnWidth> columns, size_t gap, size_t limit) {
  std::vector<size_t> out;
  for (const ColumnWidth& c : columns) out.push_back(c.wanted);
  const auto total = [&] {
    size_t sum = 0, shown = 0;
    for (const size_t width : out) sum += width, shown += width > 0;
    return sum + gap * (shown > 0 ? shown - 1 : 0);
  };
  if (limit == kAnyWidth) return out;
  // Optional columns are dropped before other columns shrink below half of their width.
  const auto halves = [&] {
    size_t sum = 0, shown = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      sum += shrinks(columns[i].shrink) ? std::max(columns[i].least, (out[i] + 1) / 2) : out[i];
      shown += out[i] > 0;
    }
    return sum + gap * (shown > 0 ? shown - 1 : 0);
  };
  for (size_t i = out.size(); i-- > 0 && halves() > limit;)
    if (columns[i].shrink == Shrink::drop) out[i] = 0;
  while (total() > limit) {
    size_t widest = out.size();
    for (size_t i = 0; i < out.size(); ++i)
      if (shrinks(columns[i].shrink) && out[i] > columns[i].least && (widest == out.size() || out[i] > out[widest]))
        widest = i;
    if (widest == out.size()) break;
    --out[widest];
  }
  return out;
}

}  // namespace moka::io
