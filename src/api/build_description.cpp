// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "api/internal.h"
#include "moka/build.h"

namespace moka {
namespace {

using Scalars = std::vector<Message::Scalar>;

[[noreturn]] void refuse(const FeatureDescription& f, const std::string& what) {
  throw Exception(ErrorKind::invalid_argument, cat("feature '", f.name, "': ", what));
}

const char* element_type(const FeatureDescription& f) {
  switch (f.array.type) {
    case DataType::float16: return "FLOAT16";
    case DataType::float32: return "FLOAT32";
    case DataType::float64: return "DOUBLE";
    case DataType::int32: return "INT32";
    case DataType::int8: return "INT8";
    default:
      refuse(f, cat("expected an array of float16, float32, float64, int32 or int8, which Core ML has, got ",
                    to_string(f.array.type)));
  }
}

/// `range` has fields lowerBound and upperBound.
void write_range(const SizeRange& range, Message to) {
  to.set("lowerBound", Message::Scalar(range.lower));
  to.set("upperBound", Message::Scalar(range.upper));
}

Scalars to_scalars(const std::vector<int64_t>& list) { return {list.begin(), list.end()}; }

void write_array(const FeatureDescription& f, Message to) {
  to.set("dataType", element_type(f));
  to.set("shape", to_scalars(f.array.shape));
  if (!f.array.enumerated.empty()) {
    Message shapes = to.add("enumeratedShapes");
    for (const auto& shape : f.array.enumerated) shapes.add("shapes").set("shape", to_scalars(shape));
  } else if (!f.array.ranges.empty()) {
    Message ranges = to.add("shapeRange");
    for (const SizeRange& range : f.array.ranges) write_range(range, ranges.add("sizeRanges"));
  }
  if (!f.default_value) return;
  const bool whole = f.array.type == DataType::int32 || f.array.type == DataType::int8;
  if (whole)
    to.set("intDefaultValue", Message::Scalar(static_cast<int64_t>(*f.default_value)));
  else
    to.set(f.array.type == DataType::float64 ? "doubleDefaultValue" : "floatDefaultValue",
           Message::Scalar(*f.default_value));
}

void write_image(const FeatureDescription& f, Message to) {
  const ImageConstraint& image = f.image;
  if (image.width <= 0 || image.height <= 0)
    refuse(f, cat("expected an image of at least 1 x 1, got ", image.width, " x ", image.height));
  to.set("width", Message::Scalar(image.width)).set("height", Message::Scalar(image.height));
  constexpr const char* names[] = {"GRAYSCALE", "RGB", "BGR", "GRAYSCALE_FLOAT16"};
  to.set("colorSpace", names[static_cast<size_t>(image.color)]);
  if (!image.enumerated.empty()) {
    Message sizes = to.add("enumeratedSizes");
    for (const auto& [width, height] : image.enumerated)
      sizes.add("sizes").set("width", Message::Scalar(width)).set("height", Message::Scalar(height));
  } else if (image.width_range || image.height_range) {
    Message range = to.add("imageSizeRange");
    write_range(image.width_range.value_or(SizeRange{image.width, image.width}), range.add("widthRange"));
    write_range(image.height_range.value_or(SizeRange{image.height, image.height}), range.add("heightRange"));
  }
}

void write_type(const FeatureDescription& f, Message to) {
  switch (f.type) {
    case FeatureType::int64: to.add("int64Type"); break;
    case FeatureType::float64: to.add("doubleType"); break;
    case FeatureType::string: to.add("stringType"); break;
    case FeatureType::multi_array: write_array(f, to.add("multiArrayType")); break;
    case FeatureType::image: write_image(f, to.add("imageType")); break;
    case FeatureType::dictionary: to.add("dictionaryType").add(f.string_keys ? "stringKeyType" : "int64KeyType"); break;
    case FeatureType::sequence: {
      Message sequence = to.add("sequenceType");
      sequence.add(f.string_keys ? "stringType" : "int64Type");
      write_range(f.sequence_length, sequence.add("sizeRange"));
      break;
    }
    case FeatureType::state: write_array(f, to.add("stateType").add("arrayType")); break;
  }
  to.set("isOptional", Message::Scalar(f.optional));
}

/// `to`: a ModelDescription or a FunctionDescription.
void write_function(const FunctionDescription& function, Message& to) {
  for (const auto& [field, list] :
       {std::pair{"input", &function.inputs}, {"output", &function.outputs}, {"state", &function.states}})
    for (const FeatureDescription& f : *list) to.set(field, describe_feature(f));
  to.set("predictedFeatureName", Message::Scalar(function.predicted_feature_name));
  to.set("predictedProbabilitiesName", Message::Scalar(function.predicted_probabilities_name));
}

}  // namespace

Message describe_feature(const FeatureDescription& feature) {
  Message out("FeatureDescription");
  out.set("name", Message::Scalar(feature.name)).set("shortDescription", Message::Scalar(feature.description));
  write_type(feature, out.add("type"));
  return out;
}

Message describe_model(const ModelDescription& description) {
  Message model("Model");
  if (description.specification_version < 1)
    throw Exception(ErrorKind::invalid_argument,
                    cat("specification version: expected 1 or more, got ", description.specification_version));
  model.set("specificationVersion", description.specification_version);
  Message to = model.add("description");
  const auto& functions = description.functions;
  if (functions.size() == 1 && functions[0].name.empty()) {
    write_function(functions[0], to);
  } else {
    for (const FunctionDescription& f : functions) {
      Message function = to.add("functions");
      function.set("name", Message::Scalar(f.name));
      write_function(f, function);
    }
    to.set("defaultFunctionName", Message::Scalar(description.default_function));
  }
  const bool texts = !description.short_description.empty() || !description.author.empty() ||
                     !description.license.empty() || !description.version.empty() || !description.user_defined.empty();
  if (texts) {
    Message metadata = to.add("metadata");
    metadata.set("shortDescription", Message::Scalar(description.short_description));
    metadata.set("author", Message::Scalar(description.author)).set("license", Message::Scalar(description.license));
    metadata.set("versionString", Message::Scalar(description.version));
    for (const auto& [key, value] : description.user_defined)
      metadata.add("userDefined").set("key", Message::Scalar(key)).set("value", Message::Scalar(value));
  }
  model.set("isUpdatable", Message::Scalar(description.updatable));
  return model;
}

}  // namespace moka
