// SPDX-License-Identifier: Apache-2.0
#include "json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "text.h"
#include "usage_error.h"

namespace moka::cli {
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
  return line == 1 ? fmt::format("column {}", column) : fmt::format("line {}, column {}", line, column);
}

/// "line 2, column 5: '1e400'" of nlohmann's "number overflow parsing '1e400'".
std::string excess_of(std::string_view text, const ParsedJson::out_of_range& e) {
  const std::string_view message = e.what();
  const size_t first = message.find('\''), last = message.rfind('\'');
  if (first == last) return std::string(message);
  const std::string_view number = message.substr(first + 1, last - first - 1);
  return fmt::format("{}: '{}'", place_of(text, text.find(number) + 1), shortened(number, 60));
}

bool nests_deeper(const ParsedJson& json, int most) {
  if (!json.is_structured()) return false;
  return most == 0 ||
         std::any_of(json.begin(), json.end(), [most](const ParsedJson& item) { return nests_deeper(item, most - 1); });
}

}  // namespace

ParsedJson parse_json(std::string_view text, const std::string& where) {
  constexpr int kDeepest = 32;
  if (trimmed(text).empty()) throw UsageError(fmt::format("{}: expected JSON, got nothing", where));
  try {
    // A callback that stops at this depth would make the parser's time grow with the square of the number of objects.
    ParsedJson json = ParsedJson::parse(text.begin(), text.end());
    if (nests_deeper(json, kDeepest))
      throw UsageError(fmt::format("{}: expected lists nested at most {} deep", where, kDeepest));
    return json;
  } catch (const ParsedJson::parse_error& e) {
    throw UsageError(
        fmt::format("{}: expected JSON, but {}: {}", where, place_of(text, e.byte), shortened(reason_of(e), 120)));
  } catch (const ParsedJson::out_of_range& e) {
    throw UsageError(
        fmt::format("{}: expected numbers within the range of doubles, but {}", where, excess_of(text, e)));
  }
}

bool is_json(std::string_view text) { return ParsedJson::accept(text.begin(), text.end()); }

}  // namespace moka::cli
