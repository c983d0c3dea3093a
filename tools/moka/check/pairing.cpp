// SPDX-License-Identifier: Apache-2.0
#include "check/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "check/measure.h"
#include "convert.h"
#include "input.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

std::vector<int64_t> shape_of(const FeatureDescription& f) {
  if (f.type == FeatureType::image) {
    const bool gray = f.image.color == ColorSpace::grayscale || f.image.color == ColorSpace::grayscale_float16;
    return {gray ? 1 : 3, f.image.height, f.image.width};
  }
  return f.array.shape;
}

bool is_alike(const FeatureDescription& a, const FeatureDescription& b) {
  const auto squeezed = [](std::vector<int64_t> shape) {
    std::erase(shape, 1);
    return shape;
  };
  return squeezed(shape_of(a)) == squeezed(shape_of(b));
}

std::vector<std::string> names_of(const std::vector<FeatureDescription>& features) {
  std::vector<std::string> out;
  for (const auto& f : features) out.push_back(f.name);
  return out;
}

}  // namespace

NamePairs paired_features(const std::vector<FeatureDescription>& from, const std::vector<FeatureDescription>& to,
                          const NamePairs& map) {
  std::vector<std::optional<size_t>> partner(from.size());
  std::vector<bool> taken(to.size());
  const auto pair_by = [&](const auto& fits) {
    for (size_t i = 0; i < from.size(); ++i)
      for (size_t j = 0; j < to.size() && !partner[i]; ++j)
        if (!taken[j] && fits(from[i], to[j])) {
          partner[i] = j;
          taken[j] = true;
        }
  };
  pair_by([&](const auto& a, const auto& b) {
    return std::find(map.begin(), map.end(), std::pair{a.name, b.name}) != map.end();
  });
  pair_by([](const auto& a, const auto& b) { return a.name == b.name; });
  pair_by([](const auto& a, const auto& b) { return a.type == b.type && is_alike(a, b); });
  pair_by([](const auto& a, const auto& b) { return is_alike(a, b); });
  pair_by([](const auto& a, const auto& b) {
    const auto labels = [](const FeatureDescription& f) {
      return f.type == FeatureType::string || f.type == FeatureType::sequence;
    };
    return labels(a) == labels(b);
  });
  NamePairs out;
  for (size_t i = 0; i < from.size(); ++i)
    if (partner[i]) out.emplace_back(from[i].name, to[*partner[i]].name);
  return out;
}

NamePairs parse_map(const std::vector<std::string>& texts, const FunctionDescription& from,
                    const std::vector<FeatureDescription>& inputs, const std::vector<FeatureDescription>& outputs) {
  NamePairs out;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size())
      throw UsageError(fmt::format("--map: expected NAME=OTHER, got '{}'", text));
    const std::string name = text.substr(0, at), other = text.substr(at + 1);
    const bool is_input = find_feature(from.inputs, name) != nullptr;
    if (!is_input && find_feature(from.outputs, name) == nullptr)
      throw UsageError(fmt::format("--map {}: the model has no input or output '{}'", text, name));
    const auto& others = is_input ? inputs : outputs;
    if (find_feature(others, other) == nullptr)
      throw UsageError(fmt::format("--map {}: the reference has no {} '{}'; it has {}", text,
                                   is_input ? "input" : "output", other, quoted_list(names_of(others))));
    out.emplace_back(name, other);
  }
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

FeatureValue adapted(const FeatureValue& value, const FeatureDescription& to, const PixelScale& pixels) {
  const auto* array = std::get_if<MultiArray>(&value);
  const std::string where = fmt::format("the reference's input '{}'", to.name);
  if (to.type == FeatureType::image && array != nullptr) return image_of_array(to, to_array(*array), where);
  if (to.type != FeatureType::multi_array) return value;
  if (array == nullptr && !has_numbers(value))
    throw UsageError(fmt::format("{}: expected {}, got {}", where, to.formatted_type(), type_of(value)));
  std::vector<int64_t> shape = to.array.shape;
  if (array != nullptr) {
    if (array->shape().size() == shape.size() || shape.empty()) return array->converted(to.array.type);
    int64_t count = 1;
    for (const int64_t d : shape) count *= d;
    if (count != array->count())
      throw UsageError(fmt::format("{}: expected {}, got {}", where, to.formatted_type(), type_of(value)));
    const MultiArray flat = array->converted(to.array.type);
    MultiArray out(to.array.type, shape);
    std::copy_n(static_cast<const std::byte*>(flat.data()), static_cast<size_t>(count) * size_of(to.array.type),
                static_cast<std::byte*>(out.data()));
    return out;
  }
  Numbers numbers = numbers_of(value);
  if (std::holds_alternative<Image>(value)) {
    for (double& v : numbers.values) v = v * pixels.scale + pixels.bias;
    if (shape.size() == 4 && shape[0] == 1) numbers.shape.insert(numbers.shape.begin(), 1);
  }
  if (numbers.shape.size() != shape.size()) numbers.shape = shape;
  return array_of_numbers(to, numbers.values, numbers.shape, where);
}

}  // namespace moka::cli
