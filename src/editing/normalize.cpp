// SPDX-License-Identifier: Apache-2.0
#include "editing/normalize.h"

#include <algorithm>
#include <cmath>

#include "editing/network.h"
#include "editing/operations.h"
#include "editing/pipeline.h"

namespace moka::editing {
namespace {

/// The axis of `shape` with `count` elements, counted from the front.
Result<size_t> axis_of(std::string_view name, const std::vector<int64_t>& shape, size_t count,
                       std::optional<int> wanted) {
  const auto rank = static_cast<int>(shape.size());
  if (wanted) {
    const int axis = *wanted < 0 ? *wanted + rank : *wanted;
    if (axis < 0 || axis >= rank || shape[static_cast<size_t>(axis)] != static_cast<int64_t>(count))
      return fail(ErrorCode::invalid_argument, "'", name, "': expected an axis with ", count, " elements, got ",
                  *wanted);
    return static_cast<size_t>(axis);
  }
  // The axis of channels comes first where several fit.
  std::vector<size_t> order;
  if (rank >= 3) order.push_back(static_cast<size_t>(rank - 3));
  for (size_t i = shape.size(); i-- > 0;) order.push_back(i);
  for (size_t axis : order)
    if (shape[axis] == static_cast<int64_t>(count)) return axis;
  return fail(ErrorCode::invalid_argument, "'", name, "': no axis has ", count, " elements, one for each mean and std");
}

Status normalize_program(const ProgramFunction& function, const std::string& name, const std::vector<double>& mean,
                         const std::vector<double>& std, std::optional<int> axis) {
  Operations ops = MOKA_TRY(Operations::of(function));
  const std::map<std::string, TensorType> types = MOKA_TRY(ops.types());
  const auto found = types.find(name);
  if (found == types.end()) return fail(ErrorCode::malformed, "input '", name, "': expected a tensor of known rank");
  const TensorType& type = found->second;
  if (type.element != "FLOAT16" && type.element != "FLOAT32")
    return fail(ErrorCode::invalid_argument, "'", name, "': expected an input of float16 or float32, got ",
                type.element);
  size_t at = 0;
  std::string value = name;
  for (const auto& [operation, numbers] : {std::pair{"sub", &mean}, {"real_div", &std}}) {
    TensorType shape{type.element, {}};
    if (numbers->size() > 1) {
      const size_t along = MOKA_TRY(axis_of(name, type.shape, numbers->size(), axis));
      shape.shape.assign(type.shape.size() - along, 1);
      shape.shape[0] = static_cast<int64_t>(numbers->size());
    }
    const Message held = MOKA_TRY(make_value(shape, *numbers));
    const char* base = operation == std::string_view("sub") ? "_mean" : "_std";
    const std::string by = MOKA_TRY(ops.insert_constant(at, held, cat(name, base)));
    const char* result = operation == std::string_view("sub") ? "_centered" : "_normalized";
    value = MOKA_TRY(ops.insert(at, operation, {{"x", value}, {"y", by}}, cat(name, result), type));
  }
  MOKA_TRY(ops.replace_uses(name, value, at, true));
  return ops.write();
}

/// The shape of a network's input; that of an image is [channels, height, width] of its default size.
Result<std::vector<int64_t>> shape_of(const Message& type) {
  if (MOKA_TRY(type.which("Type")) != "imageType")
    return integers_of(MOKA_TRY(child_or_empty(type, "multiArrayType")), "shape");
  const Message image = MOKA_TRY(type.child("imageType"));
  const bool has_color = !MOKA_TRY(text_of(image, "colorSpace")).starts_with("GRAYSCALE");
  return std::vector<int64_t>{has_color ? 3 : 1, MOKA_TRY(integer_of(image, "height")),
                              MOKA_TRY(integer_of(image, "width"))};
}

Result<double> number_of(const Message& message, std::string_view field) {
  if (MOKA_TRY(message.count(field)) == 0) return 0.0;
  return std::get<double>(MOKA_TRY(message.values(field)).at(0));
}

/// x * scale + bias for each channel.
struct Linear {
  double scale = 1;
  std::vector<double> bias{0};
};

/// The scale and bias that the preprocessing of a network's input applies.
Result<Linear> preprocessing_of(const Message& network, const std::string& name, const Message& type) {
  Linear out;
  const bool is_image = MOKA_TRY(type.which("Type")) == "imageType";
  const std::vector<int64_t> shape = MOKA_TRY(shape_of(type));
  std::vector<const char*> fields = {"grayBias"};
  if (shape.size() >= 3 && shape[shape.size() - 3] == 3) fields = {"redBias", "greenBias", "blueBias"};
  if (is_image && MOKA_TRY(has_text(MOKA_TRY(type.child("imageType")), "colorSpace", "BGR")))
    std::reverse(fields.begin(), fields.end());
  for (const Message& one : MOKA_TRY(network.children("preprocessing"))) {
    const std::string of = MOKA_TRY(text_of(one, "featureName"));
    if (of != name && !(of.empty() && is_image)) continue;
    if (MOKA_TRY(one.which("preprocessor")) != "scaler")
      return fail(ErrorCode::unsupported, "'", name, "': the network subtracts a mean image from it");
    const Message scaler = MOKA_TRY(one.child("scaler"));
    const double scale = MOKA_TRY(number_of(scaler, "channelScale"));
    out.scale *= scale;
    out.bias.resize(fields.size(), out.bias[0]);
    for (size_t i = 0; i < fields.size(); ++i)
      out.bias[i] = out.bias[i] * scale + MOKA_TRY(number_of(scaler, fields[i]));
  }
  if (std::equal(out.bias.begin() + 1, out.bias.end(), out.bias.begin())) out.bias.resize(1);
  return out;
}

Status normalize_network(const Message& network, const Feature& feature, const std::vector<double>& mean,
                         const std::vector<double>& std, std::optional<int> axis) {
  const Message type = MOKA_TRY(feature.message.child("type"));
  if (const size_t count = std::max(mean.size(), std.size()); count > 1) {
    const std::vector<int64_t> shape = MOKA_TRY(shape_of(type));
    const size_t along = MOKA_TRY(axis_of(feature.name, shape, count, axis));
    if (shape.size() != 1 && along + 3 != shape.size())
      return fail(ErrorCode::invalid_argument, "'", feature.name,
                  "': expected channels in the third axis from the end");
  }
  // The layer comes after the preprocessing, but computes what normalization before it would lead to.
  const Linear before = MOKA_TRY(preprocessing_of(network, feature.name, type));
  const auto at = [](const std::vector<double>& numbers, size_t i) { return numbers[numbers.size() == 1 ? 0 : i]; };
  std::vector<double> scale, bias;
  for (size_t i = 0; i < std::max({mean.size(), std.size(), before.bias.size()}); ++i) {
    scale.push_back(1 / at(std, i));
    bias.push_back(at(before.bias, i) * (1 - scale[i]) - at(mean, i) * before.scale * scale[i]);
  }
  return add_scale_layer(network, feature.name, true, scale, bias);
}

bool are_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

}  // namespace

Status normalize(Message model, std::string_view name, const std::vector<double>& mean, const std::vector<double>& std,
                 std::optional<int> axis) {
  const std::string kind = MOKA_TRY(kind_of(model));
  const std::vector<Feature> found = MOKA_TRY(find_features(model, name, Side::inputs));
  if (mean.empty() || std.empty() || (mean.size() != std.size() && mean.size() != 1 && std.size() != 1))
    return fail(ErrorCode::invalid_argument, "'", name, "': expected as many means as stds, got ", mean.size(), " and ",
                std.size());
  if (!are_finite(mean) || !are_finite(std))
    return fail(ErrorCode::invalid_argument, "'", name, "': expected finite means and stds");
  if (std::find(std.begin(), std.end(), 0.0) != std.end())
    return fail(ErrorCode::invalid_argument, "'", name, "': expected stds other than 0");
  if (is_pipeline(kind)) {
    const std::vector<Stage> stages = MOKA_TRY(stages_of(model));
    for (const StagePlace& place : MOKA_TRY(places_of(model, name, Side::inputs)))
      MOKA_TRY_IN(normalize(stages[place.stage].model, name, mean, std, axis),
                  cat("stage '", stages[place.stage].name, "'"));
    return {};
  }
  if (is_network(kind)) return normalize_network(MOKA_TRY(model.child(kind)), found[0], mean, std, axis);
  if (kind != "mlProgram")
    return fail(ErrorCode::unsupported, "'", name, "': expected an ML program or a neural network, got ",
                name_of_kind(kind));
  for (const Interface& interface : MOKA_TRY(interfaces(model)))
    for (const Feature& feature : MOKA_TRY(features(interface)))
      if (feature.name == name && feature.is_input && !feature.is_state)
        MOKA_TRY(normalize_program(MOKA_TRY(function_of(model, interface)), feature.name, mean, std, axis));
  return {};
}

}  // namespace moka::editing
