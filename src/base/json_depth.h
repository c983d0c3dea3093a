// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace moka {

/// Whether lists and objects of a JSON text nest deeper than `most`. For a text that is not JSON, the answer is
/// unspecified.
inline bool json_nests_deeper(std::string_view text, int most) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '[':
      case '{':
        if (++depth > most) return true;
        break;
      case ']':
      case '}': --depth; break;
      case '"':
        for (++i; i < text.size() && text[i] != '"'; ++i)
          if (text[i] == '\\') ++i;
        break;
      default: break;
    }
  }
  return false;
}

}  // namespace moka
