// SPDX-License-Identifier: Apache-2.0
#include "check/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "input.h"
#include "moka/input_sizes.h"
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

void spread(Features& inputs, const std::vector<std::string>& ranges, const FunctionDescription& function,
            uint64_t seed) {
  std::map<std::string, std::pair<double, double>> by_name;
  for (const std::string& text : ranges) {
    const NumberRange range = parse_range(text);
    const bool fits = std::any_of(function.inputs.begin(), function.inputs.end(), [&](const FeatureDescription& f) {
      return f.name == range.name && f.type == FeatureType::multi_array;
    });
    if (!fits)
      throw UsageError(fmt::format("--range {}: the model has no array input '{}'; it takes {}", text, range.name,
                                   expected_inputs(function)));
    by_name[range.name] = {range.low, range.high};
  }
  inputs = inputs_within(std::move(inputs), by_name, seed);
}

}  // namespace moka::cli
