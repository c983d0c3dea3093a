// SPDX-License-Identifier: Apache-2.0
#include "checking/pairing.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "checking/measure.h"
#include "moka/conversion.h"
#include "moka/input_sizes.h"

namespace moka {
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

[[noreturn]] void reject(const std::string& message) { throw Exception(ErrorKind::invalid_argument, message); }

std::string names_of(const std::vector<FeatureDescription>& features) {
  std::string out;
  for (const auto& f : features) out += cat(out.empty() ? "'" : ", '", f.name, "'");
  return out.empty() ? "none" : out;
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

namespace checking {

const FeatureDescription* feature_named(const std::vector<FeatureDescription>& features, std::string_view name) {
  const auto at = std::find_if(features.begin(), features.end(), [&](const auto& f) { return f.name == name; });
  return at == features.end() ? nullptr : &*at;
}

void check_map(const NamePairs& map, const FunctionDescription& from, const std::vector<FeatureDescription>& inputs,
               const std::vector<FeatureDescription>& outputs) {
  for (const auto& [name, other] : map) {
    const bool is_input = feature_named(from.inputs, name) != nullptr;
    if (!is_input && feature_named(from.outputs, name) == nullptr)
      reject(cat("map of '", name, "': the model has no input or output of that name"));
    const auto& others = is_input ? inputs : outputs;
    if (feature_named(others, other) == nullptr)
      reject(cat("map of '", name, "': the reference has no ", is_input ? "input" : "output", " '", other, "'; it has ",
                 names_of(others)));
  }
}

void spread(Features& inputs, const NumberRanges& ranges, const FunctionDescription& function, uint64_t seed) {
  for (const auto& [name, range] : ranges) {
    const FeatureDescription* input = feature_named(function.inputs, name);
    if (input == nullptr || input->type != FeatureType::multi_array)
      reject(cat("range of '", name, "': the model has no array input of that name; it takes ",
                 names_of(function.inputs)));
    if (!(range.first <= range.second)) reject(cat("range of '", name, "': expected a low and a high end"));
  }
  inputs = inputs_within(std::move(inputs), ranges, seed);
}

FeatureValue adapted(const FeatureValue& value, const FeatureDescription& to, const PixelScale& pixels) {
  const auto unlike = [&] { reject(cat("expected ", to.formatted_type(), ", got ", describe_in_full(value))); };
  const auto* array = std::get_if<MultiArray>(&value);
  try {
    if (to.type == FeatureType::image && array != nullptr) return image_of_array(to, *array);
    if (to.type != FeatureType::multi_array) return value;
    if (array == nullptr && !has_numbers(value)) unlike();
    const std::vector<int64_t>& shape = to.array.shape;
    if (array != nullptr) {
      if (array->shape().size() == shape.size() || shape.empty()) return array->converted(to.array.type);
      int64_t count = 1;
      for (const int64_t d : shape) count *= d;
      if (count != array->count()) unlike();
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
    return array_of_numbers(to, numbers.values, numbers.shape);
  } catch (const Exception& e) {
    throw Exception(e.kind(), cat("the reference's input '", to.name, "': ", e.what()));
  }
}

}  // namespace checking
}  // namespace moka
