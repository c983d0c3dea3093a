// SPDX-License-Identifier: Apache-2.0
#include "io/utf8.h"

#include <utf8proc.h>

#include <cstdint>

namespace moka::io {
namespace {

/// Decodes the character at text[at] and advances past it.
char32_t next_character(std::string_view text, size_t& at) {
  utf8proc_int32_t c = -1;
  const auto* from = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
  const utf8proc_ssize_t n = utf8proc_iterate(from, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  at += n > 0 ? static_cast<size_t>(n) : 1;
  return n > 0 ? static_cast<char32_t>(c) : U'\ufffd';
}

}  // namespace

bool append_utf8(std::string& out, char32_t c) {
  if (!utf8proc_codepoint_valid(static_cast<utf8proc_int32_t>(c))) return false;
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
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
    width += static_cast<size_t>(utf8proc_charwidth(static_cast<utf8proc_int32_t>(next_character(text, at))));
  }
  return width;
}

}  // namespace moka::io
