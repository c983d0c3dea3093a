// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "input.h"
#include "json_text.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

using ParsedJson = nlohmann::json;

[[noreturn]] void refuse(const std::string& where, std::string_view expected, std::string_view got) {
  throw UsageError(fmt::format("{}: expected {}, got '{}'", where, expected, shortened(got, 60)));
}

/// Parses JSON that a user typed. When it is not JSON, the example in `expected` helps more than the position of the
/// error.
ParsedJson typed_json(std::string_view text, const std::string& where, std::string_view expected) {
  if (!is_json(text)) refuse(where, expected, text);
  return parse_json(text, where);
}

/// A number that may be written with a point or an exponent: "3", "3.0", "1e2".
int64_t integer_of(std::string_view text, const std::string& where) {
  const std::string_view digits = trimmed(text);
  if (const auto number = parse_integer(digits)) return *number;
  const auto number = parse_number(digits);
  if (!number || *number != std::trunc(*number) || std::abs(*number) >= 0x1p63) refuse(where, "a whole number", text);
  return static_cast<int64_t>(*number);
}

/// Converts nested lists to numbers and their shape. All lists of a level must have the same length.
void flatten(const ParsedJson& json, size_t depth, std::vector<int64_t>& shape, std::vector<double>& numbers,
             const std::string& where) {
  constexpr size_t kDeepest = 16;
  if (!json.is_array()) {
    if (depth != shape.size()) refuse(where, fmt::format("lists nested {} deep everywhere", shape.size()), json.dump());
    if (json.is_boolean())
      numbers.push_back(json.get<bool>());
    else if (json.is_number())
      numbers.push_back(json.get<double>());
    else
      refuse(where, "numbers", json.dump());
    return;
  }
  const auto length = static_cast<int64_t>(json.size());
  if (depth == kDeepest) refuse(where, fmt::format("lists nested at most {} deep", kDeepest), json.dump());
  if (depth == shape.size()) {
    if (!numbers.empty()) refuse(where, fmt::format("lists nested {} deep everywhere", shape.size()), json.dump());
    shape.push_back(length);
  }
  if (shape[depth] != length)
    throw UsageError(
        fmt::format("{}: expected lists of one level to be equally long, got {} and {}", where, shape[depth], length));
  for (const ParsedJson& item : json) flatten(item, depth + 1, shape, numbers, where);
}

std::vector<double> listed_numbers(std::string_view text, const std::string& where) {
  std::vector<double> numbers;
  while (true) {
    const size_t end = std::min(text.find_first_of(", \t\n"), text.size());
    const std::string_view item = trimmed(text.substr(0, end));
    const auto number = parse_number(item);
    if (!number)
      refuse(where, "a number, numbers (1,2,3 or [[1,2],[3,4]]), @file or random", item.empty() ? text : item);
    numbers.push_back(*number);
    if (end == text.size()) return numbers;
    const bool comma = text[end] == ',';
    text.remove_prefix(end + 1);
    text = text.substr(std::min(text.find_first_not_of(" \t\n"), text.size()));
    if (!comma && text.starts_with(',')) text = trimmed(text.substr(1));
  }
}

Dictionary dictionary_of(const FeatureDescription& input, std::string_view text, const std::string& where) {
  const std::string expected = input.string_keys ? R"(a dictionary like {"word": 2})" : R"(a dictionary like {"7": 2})";
  const ParsedJson json = typed_json(text, where, expected);
  if (!json.is_object()) refuse(where, expected, text);
  Dictionary out;
  out.string_keys = input.string_keys;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_number()) refuse(fmt::format("{}: '{}'", where, key), "a number", value.dump());
    if (input.string_keys) {
      out.strings[key] = value.get<double>();
    } else {
      const auto number = parse_integer(key);
      if (!number) refuse(where, "whole numbers as keys", key);
      out.ints[*number] = value.get<double>();
    }
  }
  return out;
}

FeatureValue sequence_of(const FeatureDescription& input, std::string_view text, const std::string& where) {
  const std::string expected = input.string_keys ? R"(a list like ["a","b"])" : "a list like [1,2]";
  const ParsedJson json = typed_json(text, where, expected);
  if (!json.is_array()) refuse(where, expected, text);
  StringSequence strings;
  Int64Sequence integers;
  for (const ParsedJson& item : json) {
    if (!input.string_keys)
      integers.push_back(integer_of(item.dump(), where));
    else if (item.is_string())
      strings.push_back(item.get<std::string>());
    else
      refuse(where, "strings", item.dump());
  }
  if (input.string_keys) return strings;
  return integers;
}

}  // namespace

MultiArray array_of_numbers(const FeatureDescription& input, const std::vector<double>& numbers,
                            std::optional<std::vector<int64_t>> shape, const std::string& where) {
  try {
    return moka::array_of_numbers(input, numbers, std::move(shape));
  } catch (const Exception& e) {
    throw UsageError(fmt::format("{}: {}", where, e.what()));
  }
}

MultiArray array_from_json(const FeatureDescription& input, const ParsedJson& lists, const std::string& where) {
  std::vector<int64_t> shape;
  std::vector<double> numbers;
  flatten(lists, 0, shape, numbers, where);
  return array_of_numbers(input, numbers, shape, where);
}

FeatureValue value_from_text(const FeatureDescription& input, std::string_view text, const std::string& where) {
  switch (input.type) {
    case FeatureType::int64: return integer_of(text, where);
    case FeatureType::float64: {
      const auto number = parse_number(trimmed(text));
      if (!number) refuse(where, "a number", text);
      return *number;
    }
    case FeatureType::string: return std::string(text);
    case FeatureType::dictionary: return dictionary_of(input, text, where);
    case FeatureType::sequence: return sequence_of(input, text, where);
    case FeatureType::image: refuse(where, "a picture (@file.png, .jpg or .webp) or random", text);
    case FeatureType::multi_array:
    case FeatureType::state: break;
  }
  text = trimmed(text);
  if (!text.starts_with('[')) return array_of_numbers(input, listed_numbers(text, where), std::nullopt, where);
  return array_from_json(input, typed_json(text, where, "numbers like [[1,2],[3,4]]"), where);
}

}  // namespace moka::cli
