#pragma once

#include <cstdint>
#include <string>

namespace moka::test {

inline std::string base64(const std::string& text) {
  static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int n = 0;
  for (char c : text) {
    size_t d = digits.find(c);
    if (d == std::string::npos) continue;
    bits = bits << 6 | static_cast<uint32_t>(d);
    n += 6;
    if (n >= 8) {
      n -= 8;
      out.push_back(static_cast<char>(bits >> n & 0xff));
    }
  }
  return out;
}

}  // namespace moka::test
