// SPDX-License-Identifier: Apache-2.0
#include "compiler/class_name.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace moka::compiler {

CodePoint code_point(std::string_view text) {
  constexpr CodePoint malformed{0xFFFD, 1};
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t bytes = byte(0) < 0xC0 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (byte(0) < 0x80) return {byte(0), 1};
  if (bytes == 1 || bytes > text.size()) return malformed;
  uint32_t value = byte(0) & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return malformed;
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  return {value, bytes};
}

bool is_invisible(uint32_t c) {
  return (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

namespace {

struct Range {
  uint32_t first, last;
};

/// Signs, punctuation, spaces, arrows, drawings and emoji beyond ASCII.
constexpr Range signs[] = {{0x80, 0xA9},     {0xAB, 0xB1},     {0xB4, 0xB4},     {0xB6, 0xB8},      {0xBB, 0xBB},
                           {0xBF, 0xBF},     {0xD7, 0xD7},     {0xF7, 0xF7},     {0x2000, 0x206F},  {0x20A0, 0x20CF},
                           {0x2190, 0x245F}, {0x2500, 0x2775}, {0x2794, 0x2BFF}, {0x2E00, 0x2E7F},  {0x3000, 0x3004},
                           {0x3008, 0x3020}, {0xE000, 0xF8FF}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE6F},  {0xFEFF, 0xFEFF},
                           {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20}, {0xFFE0, 0xFFFF}, {0x1F000, 0x1FAFF}};
/// Combining marks, which cannot begin a name.
constexpr Range accents[] = {{0x300, 0x36F}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

template <size_t N>
bool contains(const Range (&ranges)[N], uint32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges), [c](const Range& r) { return c >= r.first && c <= r.last; });
}

}  // namespace

std::string class_name(std::string_view model_name) {
  std::string out;
  bool begins = false;
  for (size_t at = 0; at < model_name.size();) {
    const CodePoint c = code_point(model_name.substr(at));
    const bool ascii = c.value < 0x80;
    const bool kept = ascii ? std::isalnum(static_cast<int>(c.value)) != 0 : !contains(signs, c.value);
    if (at == 0) begins = kept && !(ascii && std::isdigit(static_cast<int>(c.value))) && !contains(accents, c.value);
    if (kept)
      out += model_name.substr(at, c.bytes);
    else
      out += '_';
    at += c.bytes;
  }
  if (out.empty() || (!begins && out[0] != '_')) out.insert(out.begin(), '_');
  return out;
}

std::string model_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  path = path.substr(path.rfind('/') + 1);
  const size_t dot = path.rfind('.');
  if (dot != std::string_view::npos && dot > 0) path = path.substr(0, dot);
  return std::string(path);
}

}  // namespace moka::compiler
