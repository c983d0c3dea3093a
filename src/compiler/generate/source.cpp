#include "compiler/generate/source.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace moka::compiler {
namespace {

bool is_control(char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }

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
  std::string out(text);
  for (char& c : out)
    if (is_control(c)) c = ' ';
  return out;
}

std::string literal(std::string_view text, bool swift) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
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
  }
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

}  // namespace moka::compiler
