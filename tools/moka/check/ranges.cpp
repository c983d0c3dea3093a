#include "check/ranges.h"

#include <fmt/format.h>

#include <algorithm>

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
  if (!low || !high) throw UsageError(fmt::format("--range: expected NAME=LOW:HIGH with two numbers, got '{}'", text));
  if (!(*low <= *high)) throw UsageError(fmt::format("--range: expected LOW up to HIGH, got '{}'", text));
  return {text.substr(0, equals), *low, *high};
}

void spread(Features& inputs, const std::vector<std::string>& ranges, const FunctionDescription& function) {
  for (const std::string& text : ranges) {
    const NumberRange range = parse_range(text);
    const bool fits = std::any_of(function.inputs.begin(), function.inputs.end(), [&](const FeatureDescription& f) {
      return f.name == range.name && f.type == FeatureType::multi_array;
    });
    if (!fits)
      throw UsageError(fmt::format("--range {}: the model has no array input '{}'; it takes {}", text, range.name,
                                   expected_inputs(function)));
    // Random numbers lie in [0, 1).
    FeatureValue* value = inputs.find(range.name);
    auto* array = value == nullptr ? nullptr : std::get_if<MultiArray>(value);
    if (array == nullptr) continue;
    MultiArray wide = array->converted(DataType::float64);
    for (double& v : wide.as<double>()) v = range.low + v * (range.high - range.low);
    *array = wide.converted(array->type());
  }
}

}  // namespace moka::cli
