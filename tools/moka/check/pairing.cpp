// SPDX-License-Identifier: Apache-2.0
#include "check/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "input.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

std::vector<std::string> feature_names(const std::vector<FeatureDescription>& features) {
  std::vector<std::string> out;
  for (const auto& f : features) out.push_back(f.name);
  return out;
}

}  // namespace

NamePairs parse_map(const std::vector<std::string>& texts, const FunctionDescription& model,
                    const std::vector<FeatureDescription>& inputs, const std::vector<FeatureDescription>& outputs) {
  NamePairs out;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size())
      throw UsageError(fmt::format("--map: expected NAME=OTHER, got '{}'", text));
    const std::string name = text.substr(0, at), other = text.substr(at + 1);
    const bool is_input = find_feature(model.inputs, name) != nullptr;
    if (!is_input && find_feature(model.outputs, name) == nullptr)
      throw UsageError(fmt::format("--map {}: the model has no input or output '{}'", text, name));
    const auto& others = is_input ? inputs : outputs;
    if (find_feature(others, other) == nullptr)
      throw UsageError(fmt::format("--map {}: the reference has no {} '{}'; it has {}", text,
                                   is_input ? "input" : "output", other, quoted_list(feature_names(others))));
    out.emplace_back(name, other);
  }
  if (paired_features(model.outputs, outputs, out).empty())
    throw UsageError("no output of the model has a partner in the reference; --map NAME=OTHER names one");
  const NamePairs paired = paired_features(model.inputs, inputs, out);
  for (const auto& input : inputs)
    if (!input.optional &&
        std::none_of(paired.begin(), paired.end(), [&](const auto& p) { return p.second == input.name; }))
      throw UsageError(fmt::format("the reference's input '{}' has no partner in the model; --map NAME={} names one",
                                   input.name, input.name));
  return out;
}

PixelScale pixel_scale_of(const std::string& scale, const std::string& bias) {
  const auto number = [](const std::string& text, const char* option) {
    const auto value = parse_quotient(text);
    if (!value || !std::isfinite(*value))
      throw UsageError(fmt::format("{}: expected a number such as 0.5 or 1/255, got '{}'", option, text));
    return *value;
  };
  return {number(scale, "--pixel-scale"), number(bias, "--pixel-bias")};
}

}  // namespace moka::cli
