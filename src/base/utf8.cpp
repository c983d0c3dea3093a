#include "base/utf8.h"

#include <algorithm>

namespace moka {

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    // The number of bytes that follow, and the range of the first of them.
    size_t more = 0;
    unsigned lower = 0x80, upper = 0xBF;
    if (lead < 0x80) {
      more = 0;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) lower = 0xA0;
      if (lead == 0xED) upper = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) lower = 0x90;
      if (lead == 0xF4) upper = 0x8F;
    } else {
      return false;
    }
    if (text.size() - i <= more) return false;
    for (size_t k = 1; k <= more; ++k, lower = 0x80, upper = 0xBF) {
      const auto c = static_cast<unsigned char>(text[i + k]);
      if (c < lower || c > upper) return false;
    }
    i += more + 1;
  }
  return true;
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
