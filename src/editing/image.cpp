// SPDX-License-Identifier: Apache-2.0
#include "editing/image.h"

#include <algorithm>

#include "editing/infer.h"
#include "editing/network.h"
#include "editing/operations.h"
#include "editing/pipeline.h"
#include "editing/types.h"

namespace moka::editing {
namespace {

bool all_are(const std::vector<double>& numbers, double value) {
  return std::all_of(numbers.begin(), numbers.end(), [&](double n) { return n == value; });
}

/// The axes of an array's shape.
struct Layout {
  size_t channel = 0, height = 0, width = 0, rank = 0;
  bool has_channel = true;
};

Result<Layout> layout_of(const std::string& name, const std::vector<int64_t>& shape, const ImageSettings& settings,
                         int64_t channels) {
  const size_t rank = shape.size();
  const auto refuse = [&](std::string_view what) {
    std::string text;
    for (int64_t size : shape)
      text += cat(text.empty() ? "" : ", ", size < 0 ? std::string("?") : std::to_string(size));
    return fail(ErrorCode::invalid_argument, "'", name, "': expected an array of ", what, ", got the shape [", text,
                "]");
  };
  if (rank == 2 && channels == 1) return Layout{0, 0, 1, 2, false};
  if (rank != 3 && rank != 4) return refuse("3 or 4 dimensions");
  if (rank == 4 && shape[0] != 1) return refuse("one image, with 1 as the first dimension");
  const Layout planes{rank - 3, rank - 2, rank - 1, rank}, pixels{rank - 1, rank - 3, rank - 2, rank};
  for (const Layout& layout : {planes, pixels}) {
    const std::string_view text = layout.channel == rank - 1 ? "hwc" : "chw";
    if (shape[layout.channel] == channels && (settings.layout.empty() || settings.layout == text)) return layout;
  }
  return refuse(cat(channels, channels == 1 ? " channel" : " channels",
                    settings.layout.empty() ? "" : cat(" in the layout ", settings.layout)));
}

/// The ImageFeatureType for an ArrayFeatureType.
Result<Message> image_type(const Message& array, const Layout& layout, const ImageSettings& settings) {
  Message out = MOKA_TRY(Message::make("ImageFeatureType"));
  std::vector<int64_t> shape = MOKA_TRY(integers_of(array, "shape"));
  const std::string flexibility = MOKA_TRY(array.which("ShapeFlexibility"));
  if (flexibility == "enumeratedShapes") {
    const Message list = MOKA_TRY(array.child(flexibility));
    Message sizes = MOKA_TRY(out.edit("enumeratedSizes"));
    for (const Message& one : MOKA_TRY(list.children("shapes"))) {
      const std::vector<int64_t> allowed = MOKA_TRY(integers_of(one, "shape"));
      if (allowed.size() != layout.rank)
        return fail(ErrorCode::invalid_argument, "expected enumerated shapes of ", layout.rank, " dimensions");
      if (shape.empty()) shape = allowed;
      const Message size = MOKA_TRY(sizes.edit("sizes"));
      MOKA_TRY(set_integer(size, "width", allowed[layout.width]));
      MOKA_TRY(set_integer(size, "height", allowed[layout.height]));
    }
  } else if (flexibility == "shapeRange") {
    const Message list = MOKA_TRY(array.child(flexibility));
    const std::vector<Message> ranges = MOKA_TRY(list.children("sizeRanges"));
    if (ranges.size() != layout.rank)
      return fail(ErrorCode::invalid_argument, "expected ", layout.rank, " ranges of sizes, got ", ranges.size());
    Message range = MOKA_TRY(out.edit("imageSizeRange"));
    MOKA_TRY(range.set("widthRange", ranges[layout.width]));
    MOKA_TRY(range.set("heightRange", ranges[layout.height]));
    if (shape.empty())
      for (const Message& one : ranges) shape.push_back(MOKA_TRY(integer_of(one, "lowerBound")));
  }
  if (shape.size() != layout.rank)
    return fail(ErrorCode::invalid_argument, "expected a described shape of ", layout.rank, " dimensions, got ",
                shape.size());
  MOKA_TRY(set_integer(out, "width", shape[layout.width]));
  MOKA_TRY(set_integer(out, "height", shape[layout.height]));
  MOKA_TRY(set_text(out, "colorSpace", settings.color));
  return out;
}

/// value * scale + bias.
Result<std::string> scaled(Operations& ops, size_t& at, std::string value, const TensorType& type,
                           const ImageSettings& settings, const std::string& base) {
  const auto constant = [&](const std::vector<double>& numbers, const std::string& name) {
    TensorType shape{type.element, {}};
    if (numbers.size() > 1) shape.shape = {1, static_cast<int64_t>(numbers.size()), 1, 1};
    Result<Message> made = make_value(shape, numbers);
    return made.ok() ? ops.insert_constant(at, made.value(), name) : Result<std::string>(std::move(made).error());
  };
  if (!all_are(settings.scale, 1)) {
    const std::string by = MOKA_TRY(constant(settings.scale, cat(base, "_scale")));
    value = MOKA_TRY(ops.insert(at, "mul", {{"x", value}, {"y", by}}, cat(base, "_scaled"), type));
  }
  if (!all_are(settings.bias, 0)) {
    const std::string by = MOKA_TRY(constant(settings.bias, cat(base, "_bias")));
    value = MOKA_TRY(ops.insert(at, "add", {{"x", value}, {"y", by}}, cat(base, "_biased"), type));
  }
  return value;
}

std::vector<int64_t> image_shape(const std::vector<int64_t>& shape, const Layout& layout, int64_t channels) {
  return {1, channels, shape[layout.height], shape[layout.width]};
}

Result<std::string> with_integers(Operations& ops, size_t& at, const std::string& type, const std::string& value,
                                  const std::string& parameter, const std::vector<double>& numbers,
                                  const TensorType& result, const std::string& base) {
  const Message held = MOKA_TRY(make_value({"INT32", {static_cast<int64_t>(numbers.size())}}, numbers));
  const std::string constant = MOKA_TRY(ops.insert_constant(at, held, cat(base, "_", parameter)));
  return ops.insert(at, type, {{"x", value}, {parameter, constant}}, base, result);
}

Status program_input(const ProgramFunction& function, const std::string& name, const ImageSettings& settings,
                     int64_t channels, Layout& layout) {
  for (Message input : MOKA_TRY(function.function.children("inputs"))) {
    if (!MOKA_TRY(has_text(input, "name", name))) continue;
    const auto type = MOKA_TRY(tensor_type(MOKA_TRY(input.child("type"))));
    if (!type) return fail(ErrorCode::malformed, "input '", name, "': expected a tensor type of known rank");
    layout = MOKA_TRY(layout_of(name, type->shape, settings, channels));
    TensorType image{settings.color == "GRAYSCALE_FLOAT16" ? "FLOAT16" : "FLOAT32",
                     image_shape(type->shape, layout, channels)};
    MOKA_TRY(input.set("type", MOKA_TRY(make_type(image))));
    Operations ops = MOKA_TRY(Operations::of(function));
    size_t at = 0;
    std::string value = MOKA_TRY(scaled(ops, at, name, image, settings, name));
    if (image.element != type->element) {
      image.element = type->element;
      value = MOKA_TRY(insert_cast(ops, at, value, image, cat(name, "_cast")));
    }
    if (layout.has_channel && layout.channel == layout.rank - 1) {
      image.shape = {1, image.shape[2], image.shape[3], channels};
      value = MOKA_TRY(with_integers(ops, at, "transpose", value, "perm", {0, 2, 3, 1}, image, cat(name, "_hwc")));
    }
    if (layout.rank < 4) {
      const std::vector<double> axes = layout.rank == 3 ? std::vector<double>{0} : std::vector<double>{0, 1};
      value = MOKA_TRY(with_integers(ops, at, "squeeze", value, "axes", axes, *type, cat(name, "_squeezed")));
    }
    if (value != name) MOKA_TRY(ops.replace_uses(name, value, at, true));
    return ops.write();
  }
  return fail(ErrorCode::malformed, "input '", name, "' is described, but the program does not have it");
}

Status program_output(const ProgramFunction& function, const std::string& name, const ImageSettings& settings,
                      int64_t channels, Layout& layout, std::vector<int64_t>& shape) {
  Operations ops = MOKA_TRY(Operations::of(function));
  const Operations::Definition definition = MOKA_TRY(ops.definition_of_output(name));
  layout = MOKA_TRY(layout_of(name, definition.type.shape, settings, channels));
  shape = definition.type.shape;
  const std::string before = unique_name(cat(name, "_before_image"), ops.names);
  MOKA_TRY(set_text(definition.output, "name", before));
  MOKA_TRY(ops.replace_uses(name, before, definition.operation + 1));
  size_t at = ops.list.size();
  std::string value = before;
  TensorType image = definition.type;
  if (layout.rank < 4) {
    const std::vector<double> axes = layout.rank == 3 ? std::vector<double>{0} : std::vector<double>{0, 1};
    image.shape.insert(image.shape.begin(), 4 - layout.rank, 1);
    value = MOKA_TRY(with_integers(ops, at, "expand_dims", value, "axes", axes, image, cat(name, "_expanded")));
  }
  if (layout.has_channel && layout.channel == layout.rank - 1) {
    image.shape = image_shape(definition.type.shape, layout, channels);
    value = MOKA_TRY(with_integers(ops, at, "transpose", value, "perm", {0, 3, 1, 2}, image, cat(name, "_chw")));
  }
  const std::string wanted = settings.color == "GRAYSCALE_FLOAT16" ? "FLOAT16" : "FLOAT32";
  if (image.element != wanted) {
    image.element = wanted;
    value = MOKA_TRY(insert_cast(ops, at, value, image, cat(name, "_cast")));
  }
  value = MOKA_TRY(scaled(ops, at, value, image, settings, name));
  MOKA_TRY(ops.write());
  // The output is found by the name of the feature.
  return rename_values(function, {{value, name}});
}

/// Adds the shape of an output to its description, where it is optional for networks.
Status describe_shape(const format::ModelSource& source, const Message& network, const std::string& output,
                      Message array) {
  if (MOKA_TRY(array.count("shape")) != 0 || !MOKA_TRY(array.which("ShapeFlexibility")).empty()) return {};
  const auto sizes = MOKA_TRY(network_sizes(source));
  const auto found = sizes.find(output);
  if (found == sizes.end()) return {};
  const bool is_exact = MOKA_TRY(has_text(network, "arrayInputShapeMapping", "EXACT_ARRAY_MAPPING"));
  return set_integers(array, "shape", described_size(found->second, is_exact));
}

Status network_image(const format::ModelSource& source, Message network, const Feature& feature, const Message& array,
                     const ImageSettings& settings, int64_t channels, Layout& layout) {
  if (!feature.is_input) MOKA_TRY(describe_shape(source, network, feature.name, array));
  const std::vector<int64_t> shape = MOKA_TRY(integers_of(array, "shape"));
  layout = MOKA_TRY(layout_of(feature.name, shape, settings, channels));
  if (layout.channel != layout.rank - 3 || layout.rank < 3)
    return fail(ErrorCode::invalid_argument, "'", feature.name, "': images of neural networks have the layout chw");
  if (!feature.is_input) {
    if (all_are(settings.scale, 1) && all_are(settings.bias, 0)) return {};
    return add_scale_layer(network, feature.name, false, settings.scale, settings.bias);
  }
  if (!all_are(settings.scale, settings.scale[0]))
    return fail(ErrorCode::invalid_argument, "'", feature.name,
                "': the preprocessing of neural networks has one scale for all channels");
  for (const Message& other : MOKA_TRY(network.children("preprocessing")))
    if (MOKA_TRY(has_text(other, "featureName", feature.name)))
      return fail(ErrorCode::invalid_argument, "'", feature.name, "': has preprocessing already");
  if (MOKA_TRY(has_text(network, "arrayInputShapeMapping", "EXACT_ARRAY_MAPPING"))) {
    if (layout.rank != 4)
      return fail(ErrorCode::invalid_argument, "'", feature.name,
                  "': expected an array of 4 dimensions, because the network maps shapes exactly");
    MOKA_TRY(set_text(network, "imageInputShapeMapping", "RANK4_IMAGE_MAPPING"));
  }
  if (all_are(settings.scale, 1) && all_are(settings.bias, 0)) return {};
  Message preprocessing = MOKA_TRY(network.edit("preprocessing"));
  MOKA_TRY(set_text(preprocessing, "featureName", feature.name));
  Message scaler = MOKA_TRY(preprocessing.edit("scaler"));
  MOKA_TRY(scaler.set("channelScale", format::Scalar(settings.scale[0])));
  std::vector<const char*> fields = {"redBias", "greenBias", "blueBias"};
  if (settings.color == "BGR") std::reverse(fields.begin(), fields.end());
  if (channels == 1) fields = {"grayBias"};
  for (size_t i = 0; i < fields.size(); ++i)
    MOKA_TRY(scaler.set(fields[i], format::Scalar(settings.bias[settings.bias.size() == 1 ? 0 : i])));
  return {};
}

}  // namespace

Status set_image(const format::ModelSource& source, std::string_view name, const ImageSettings& settings, Side side) {
  const Message& model = source.specification;
  const std::string kind = MOKA_TRY(kind_of(model));
  MOKA_TRY(find_features(model, name, side));
  const int64_t channels = settings.color == "RGB" || settings.color == "BGR" ? 3 : 1;
  for (const auto* numbers : {&settings.scale, &settings.bias})
    if (numbers->size() != 1 && numbers->size() != static_cast<size_t>(channels))
      return fail(ErrorCode::invalid_argument, "'", name, "': expected one number or one for each of ", channels,
                  channels == 1 ? " channel" : " channels", " as scale and bias, got ", numbers->size());
  if (is_pipeline(kind)) {
    const std::vector<Stage> stages = MOKA_TRY(stages_of(model));
    std::optional<Message> type;
    for (const StagePlace& place : MOKA_TRY(places_of(model, name, side))) {
      const Side on = place.is_input ? Side::inputs : Side::outputs;
      const format::ModelSource stage{stages[place.stage].model, source.weights};
      MOKA_TRY_IN(set_image(stage, name, settings, on), cat("stage '", stages[place.stage].name, "'"));
      type = MOKA_TRY(MOKA_TRY(find_features(stages[place.stage].model, name, on)).at(0).message.child("type"));
    }
    for (const Feature& feature : MOKA_TRY(find_features(model, name, side)))
      if (type) MOKA_TRY(Message(feature.message).set("type", *type));
    return {};
  }
  if (kind != "mlProgram" && !is_network(kind))
    return fail(ErrorCode::unsupported, "'", name, "': ", name_of_kind(kind), " takes no images");
  for (const Interface& interface : MOKA_TRY(interfaces(model)))
    for (const Feature& feature : MOKA_TRY(features(interface))) {
      if (feature.name != name || !is_on(feature, side)) continue;
      Message type = MOKA_TRY(feature.message.child("type"));
      const std::string old = MOKA_TRY(type.which("Type"));
      if (old != "multiArrayType")
        return fail(ErrorCode::invalid_argument, "'", name, "': expected an array, got ", name_of_type(old));
      const Message array = MOKA_TRY(type.child(old)).copy();
      Layout layout;
      if (kind == "mlProgram") {
        const ProgramFunction function = MOKA_TRY(function_of(model, interface));
        std::vector<int64_t> shape;
        MOKA_TRY(feature.is_input ? program_input(function, feature.name, settings, channels, layout)
                                  : program_output(function, feature.name, settings, channels, layout, shape));
        if (!shape.empty() && MOKA_TRY(array.count("shape")) == 0) {
          if (std::find(shape.begin(), shape.end(), -1) != shape.end())
            return fail(ErrorCode::invalid_argument, "output '", name,
                        "': an image needs a known size; fix the shapes");
          MOKA_TRY(set_integers(array, "shape", shape));
        }
      } else {
        MOKA_TRY(network_image(source, MOKA_TRY(model.child(kind)), feature, array, settings, channels, layout));
      }
      MOKA_TRY_IN(type.set("imageType", MOKA_TRY(image_type(array, layout, settings))), cat("'", name, "'"));
    }
  return need_version(model, settings.color == "GRAYSCALE_FLOAT16" ? 7 : 1);
}

}  // namespace moka::editing
