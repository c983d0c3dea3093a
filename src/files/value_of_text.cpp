// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "files/error.h"
#include "files/json_text.h"
#include "files/text.h"
#include "moka/conversion.h"
#include "moka/files.h"

namespace moka {
namespace files {
namespace {

using ParsedJson = nlohmann::json;

template <class Expected>
[[noreturn]] void unfit(const Expected& expected, std::string_view got) {
  refuse(ErrorKind::invalid_argument, "expected ", expected, ", got '", shortened(got, 60), "'");
}

/// Parses JSON that a user typed. When it is not JSON, the example in `expected` helps more than the position of the
/// error.
ParsedJson typed_json(std::string_view text, std::string_view expected) {
  if (!is_json(text)) unfit(expected, text);
  return parse_json(text);
}

/// A number that may be written with a point or an exponent: "3", "3.0", "1e2".
int64_t integer_of(std::string_view text) {
  const std::string_view digits = trimmed(text);
  if (const auto number = integer_in(digits)) return *number;
  const auto number = number_in(digits);
  if (!number || *number != std::trunc(*number) || std::abs(*number) >= 0x1p63) unfit("a whole number", text);
  return static_cast<int64_t>(*number);
}

/// Converts nested lists to numbers and their shape. All lists of a level must have the same length.
void flatten(const ParsedJson& json, size_t depth, std::vector<int64_t>& shape, std::vector<double>& numbers) {
  constexpr size_t kDeepest = 16;
  const auto nested = [](size_t deep) { return cat("lists nested ", deep, " deep everywhere"); };
  if (!json.is_array()) {
    if (depth != shape.size()) unfit(nested(shape.size()), json.dump());
    if (json.is_boolean())
      numbers.push_back(json.get<bool>());
    else if (json.is_number())
      numbers.push_back(json.get<double>());
    else
      unfit("numbers", json.dump());
    return;
  }
  const auto length = static_cast<int64_t>(json.size());
  if (depth == kDeepest) unfit(cat("lists nested at most ", kDeepest, " deep"), json.dump());
  if (depth == shape.size()) {
    if (!numbers.empty()) unfit(nested(shape.size()), json.dump());
    shape.push_back(length);
  }
  if (shape[depth] != length)
    refuse(ErrorKind::invalid_argument, "expected lists of one level to be equally long, got ", shape[depth], " and ",
           length);
  for (const ParsedJson& item : json) flatten(item, depth + 1, shape, numbers);
}

std::vector<double> listed_numbers(std::string_view text) {
  std::vector<double> numbers;
  while (true) {
    const size_t end = std::min(text.find_first_of(", \t\n"), text.size());
    const std::string_view item = trimmed(text.substr(0, end));
    const auto number = number_in(item);
    if (!number) unfit("a number or numbers (1,2,3 or [[1,2],[3,4]])", item.empty() ? text : item);
    numbers.push_back(*number);
    if (end == text.size()) return numbers;
    const bool comma = text[end] == ',';
    text.remove_prefix(end + 1);
    text = text.substr(std::min(text.find_first_not_of(" \t\n"), text.size()));
    if (!comma && text.starts_with(',')) text = trimmed(text.substr(1));
  }
}

Dictionary dictionary_of(const FeatureDescription& feature, std::string_view text) {
  const std::string_view expected =
      feature.string_keys ? R"(a dictionary like {"word": 2})" : R"(a dictionary like {"7": 2})";
  const ParsedJson json = typed_json(text, expected);
  if (!json.is_object()) unfit(expected, text);
  Dictionary out;
  out.string_keys = feature.string_keys;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_number())
      refuse(ErrorKind::invalid_argument, "'", key, "': expected a number, got '", shortened(value.dump(), 60), "'");
    if (feature.string_keys) {
      out.strings[key] = value.get<double>();
    } else {
      const auto number = integer_in(key);
      if (!number) unfit("whole numbers as keys", key);
      out.ints[*number] = value.get<double>();
    }
  }
  return out;
}

FeatureValue sequence_of(const FeatureDescription& feature, std::string_view text) {
  const std::string_view expected = feature.string_keys ? R"(a list like ["a","b"])" : "a list like [1,2]";
  const ParsedJson json = typed_json(text, expected);
  if (!json.is_array()) unfit(expected, text);
  StringSequence strings;
  Int64Sequence integers;
  for (const ParsedJson& item : json) {
    if (!feature.string_keys)
      integers.push_back(integer_of(item.dump()));
    else if (item.is_string())
      strings.push_back(item.get<std::string>());
    else
      unfit("strings", item.dump());
  }
  if (feature.string_keys) return strings;
  return integers;
}

}  // namespace
}  // namespace files

FeatureValue value_of_text(const FeatureDescription& feature, std::string_view text) {
  using namespace files;
  switch (feature.type) {
    case FeatureType::int64: return integer_of(text);
    case FeatureType::float64: {
      const auto number = number_in(trimmed(text));
      if (!number) unfit("a number", text);
      return *number;
    }
    case FeatureType::string: return std::string(text);
    case FeatureType::dictionary: return dictionary_of(feature, text);
    case FeatureType::sequence: return sequence_of(feature, text);
    case FeatureType::image: unfit(feature.formatted_type(), text);
    case FeatureType::multi_array:
    case FeatureType::state: break;
  }
  text = trimmed(text);
  if (!text.starts_with('[')) return array_of_numbers(feature, listed_numbers(text));
  std::vector<int64_t> shape;
  std::vector<double> numbers;
  flatten(typed_json(text, "numbers like [[1,2],[3,4]]"), 0, shape, numbers);
  return array_of_numbers(feature, numbers, shape);
}

}  // namespace moka
