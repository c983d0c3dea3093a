// SPDX-License-Identifier: Apache-2.0
#include "compiler/generate/source.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "base/error.h"
#include "compiler/class_name.h"

namespace moka::compiler {
namespace {

bool is_control(char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }

/// Calls `hidden` with each code point that changes how the text around it is displayed, and `other` with each other
/// byte.
template <class Hidden, class Other>
void split_hidden(std::string_view text, const Hidden& hidden, const Other& other) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point(text.substr(at));
    if (is_invisible(c.value))
      hidden(c.value);
    else
      for (char byte : text.substr(at, c.bytes)) other(byte);
    at += c.bytes;
  }
}

std::string filled_line(std::string_view line, const Words& words) {
  std::string out;
  bool had_word = false;
  for (size_t at = 0; at < line.size();) {
    const size_t end = line[at] == '$' ? line.find('$', at + 1) : std::string_view::npos;
    const auto word = end == std::string_view::npos ? words.end() : words.find(line.substr(at + 1, end - at - 1));
    if (word == words.end()) {
      out += line[at++];
      continue;
    }
    had_word = true;
    out += word->second;
    at = end + 1;
  }
  return had_word && out == "\n" ? "" : out;
}

}  // namespace

std::string fill(std::string_view text, const Words& words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    out += filled_line(text.substr(at, end - at), words);
    at = end;
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  split_hidden(
      text, [&](uint32_t) { out += ' '; }, [&](char c) { out += is_control(c) ? ' ' : c; });
  return out;
}

std::string literal(std::string_view text, bool swift) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  const auto hidden = [&](uint32_t c) {
    char number[5];
    std::snprintf(number, sizeof number, "%04x", c);
    out += swift ? cat("\\u{", number, "}") : cat("\\u", number);
  };
  split_hidden(text, hidden, [&](char c) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (is_control(c)) {
      const auto u = static_cast<unsigned char>(c);
      if (swift)
        out += {'\\', 'u', '{', digits[u >> 4], digits[u & 15], '}'};
      else
        out += {'\\', digits[u >> 6], digits[u >> 3 & 7], digits[u & 7]};
    } else {
      out += c;
    }
  });
  return out + '"';
}

std::string each(const std::vector<Field>& fields, std::string_view between,
                 const std::function<std::string(const Field&)>& write) {
  std::string out;
  for (const Field& field : fields) {
    if (!out.empty()) out += between;
    out += write(field);
  }
  return out;
}

std::string capitalized(std::string name) {
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

bool is_image(const Field& field) { return field.feature.kind == import::FeatureKind::image; }

}  // namespace moka::compiler
