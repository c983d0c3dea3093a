// SPDX-License-Identifier: Apache-2.0
#include "check/ranges.h"

#include <fmt/format.h>

#include <cmath>

#include "input.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {

NumberRange parse_range(const std::string& text) {
  const size_t equals = text.find('='), colon = text.rfind(':');
  if (equals == std::string::npos || colon == std::string::npos || colon < equals)
    throw UsageError(fmt::format("--range: expected NAME=LOW:HIGH, got '{}'", text));
  const auto low = parse_number(text.substr(equals + 1, colon - equals - 1)),
             high = parse_number(text.substr(colon + 1));
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high))
    throw UsageError(fmt::format("--range: expected NAME=LOW:HIGH with two numbers, got '{}'", text));
  if (!(*low <= *high)) throw UsageError(fmt::format("--range: expected LOW up to HIGH, got '{}'", text));
  return {text.substr(0, equals), *low, *high};
}

NumberRanges ranges_of(const std::vector<std::string>& texts, const FunctionDescription& function) {
  NumberRanges out;
  for (const std::string& text : texts) {
    const NumberRange range = parse_range(text);
    const FeatureDescription* input = find_feature(function.inputs, range.name);
    if (input == nullptr || input->type != FeatureType::multi_array)
      throw UsageError(fmt::format("--range {}: the model has no array input '{}'; it takes {}", text, range.name,
                                   expected_inputs(function)));
    out[range.name] = {range.low, range.high};
  }
  return out;
}

}  // namespace moka::cli
