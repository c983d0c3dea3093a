#include "io/utf8.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace moka::io {
namespace {

struct Range {
  char32_t first, last;
};

constexpr Range kZeroWidth[] = {{0x0300, 0x036f}, {0x0483, 0x0489},  {0x0591, 0x05bd}, {0x064b, 0x065f},
                                {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},  {0x200b, 0x200f}, {0x202a, 0x202e},
                                {0x2060, 0x2064}, {0x20d0, 0x20ff},  {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
                                {0xfeff, 0xfeff}, {0xe0100, 0xe01ef}};
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
                           {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97c},   {0xac00, 0xd7a3},
                           {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},
                           {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <size_t N>
bool inside(const Range (&ranges)[N], char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges), [c](Range r) { return c >= r.first && c <= r.last; });
}

/// Decodes the character at text[at] and moves past it.
char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  const size_t start = at++;
  if (lead < 0x80) return lead;
  const size_t length = lead >= 0xf0 && lead < 0xf5   ? 4
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                                                      : 0;
  if (length == 0 || start + length > text.size()) return 0xfffd;
  char32_t c = lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(start + i) & 0xc0) != 0x80) return 0xfffd;
    c = c << 6 | (byte(start + i) & 0x3f);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0xfffd;
  at = start + length;
  return c;
}

}  // namespace

bool append_utf8(std::string& out, char32_t c) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
  if (c < 0x80) {
    out += static_cast<char>(c);
    return true;
  }
  const int tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint8_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLead[tail] | (c >> (6 * tail)));
  for (int i = tail - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3f));
  return true;
}

std::vector<char32_t> decode_utf8(std::string_view text) {
  std::vector<char32_t> result;
  for (size_t at = 0; at < text.size();) result.push_back(next_character(text, at));
  return result;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("\x1b[")) {
      const size_t end = text.find('m', at);
      if (end == std::string_view::npos) break;
      at = end + 1;
      continue;
    }
    const char32_t c = next_character(text, at);
    if (c < 0x20 || c == 0x7f || inside(kZeroWidth, c)) continue;
    width += inside(kWide, c) ? 2 : 1;
  }
  return width;
}

}  // namespace moka::io
