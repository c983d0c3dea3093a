// SPDX-License-Identifier: Apache-2.0
#include "files/json_text.h"

#include <algorithm>

#include "base/utf8.h"
#include "files/error.h"
#include "files/text.h"
#include "moka/files.h"

namespace moka {
namespace files {
namespace {

using ParsedJson = nlohmann::json;

/// The part of nlohmann's message after the position: "unexpected end of input; expected '[', '{', or a literal".
std::string reason_of(const ParsedJson::parse_error& e) {
  std::string_view text = e.what();
  if (const size_t dash = text.find(" - "); dash != text.npos) return std::string(text.substr(dash + 3));
  if (const size_t colon = text.rfind(": "); colon != text.npos) text.remove_prefix(colon + 2);
  return std::string(text);
}

/// "line 2, column 5" for a byte number that starts at 1.
std::string place_of(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = before.size() - (start == before.npos ? 0 : start + 1) + 1;
  return line == 1 ? cat("column ", column) : cat("line ", line, ", column ", column);
}

/// "line 2, column 5: '1e400'" of nlohmann's "number overflow parsing '1e400'".
std::string excess_of(std::string_view text, const ParsedJson::out_of_range& e) {
  const std::string_view message = e.what();
  const size_t first = message.find('\''), last = message.rfind('\'');
  if (first == last) return std::string(message);
  const std::string_view number = message.substr(first + 1, last - first - 1);
  return cat(place_of(text, text.find(number) + 1), ": '", shortened(number, 60), "'");
}

bool nests_deeper(const ParsedJson& json, int most) {
  if (!json.is_structured()) return false;
  return most == 0 ||
         std::any_of(json.begin(), json.end(), [most](const ParsedJson& item) { return nests_deeper(item, most - 1); });
}

}  // namespace

ParsedJson parse_json(std::string_view text) {
  constexpr int kDeepest = 32;
  const auto wrong = [](const auto&... parts) { refuse(ErrorKind::invalid_argument, parts...); };
  if (trimmed(text).empty()) wrong("expected JSON, got nothing");
  try {
    // A callback that stops at this depth would make the parser's time grow with the square of the number of objects.
    ParsedJson json = ParsedJson::parse(text.begin(), text.end());
    if (nests_deeper(json, kDeepest)) wrong("expected lists nested at most ", kDeepest, " deep");
    return json;
  } catch (const ParsedJson::parse_error& e) {
    wrong("expected JSON, but ", place_of(text, e.byte), ": ", shortened(reason_of(e), 120));
  } catch (const ParsedJson::out_of_range& e) {
    wrong("expected numbers within the range of doubles, but ", excess_of(text, e));
  }
  return {};
}

bool is_json(std::string_view text) { return ParsedJson::accept(text.begin(), text.end()); }

}  // namespace files

std::optional<std::string> json_fault(std::string_view text) {
  try {
    files::parse_json(text);
    return std::nullopt;
  } catch (const Exception& e) {
    return e.what();
  }
}

}  // namespace moka
