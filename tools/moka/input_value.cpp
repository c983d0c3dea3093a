// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "input.h"
#include "text.h"

namespace moka::cli {
namespace {

[[noreturn]] void refuse(const std::string& where, std::string_view expected, std::string_view got) {
  throw UsageError(fmt::format("{}: expected {}, got '{}'", where, expected, shortened(got, 60)));
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

FeatureValue value_from_text(const FeatureDescription& input, std::string_view text, const std::string& where) {
  if (input.type == FeatureType::image) refuse(where, "a picture (@file.png, .jpg or .webp) or random", text);
  const std::string_view first = trimmed(text).substr(0, trimmed(text).find_first_of(", \t\n"));
  if (input.type == FeatureType::multi_array && !first.starts_with('[') && !parse_number(first))
    refuse(where, "a number, numbers (1,2,3 or [[1,2],[3,4]]), @file or random", first.empty() ? text : first);
  try {
    return value_of_text(input, text);
  } catch (const Exception& e) {
    throw UsageError(fmt::format("{}: {}", where, e.what()));
  }
}

}  // namespace moka::cli
