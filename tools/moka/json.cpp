// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <algorithm>
#include <cmath>

#include "convert.h"
#include "moka/report.h"

namespace moka::cli {
namespace {

Json range_json(const SizeRange& range) {
  return Json::array({range.lower, range.upper < 0 ? Json() : Json(range.upper)});
}

std::string_view color_name(ColorSpace color) {
  switch (color) {
    case ColorSpace::grayscale: return "grayscale";
    case ColorSpace::rgb: return "rgb";
    case ColorSpace::bgr: return "bgr";
    case ColorSpace::grayscale_float16: return "grayscaleFloat16";
  }
  return "?";
}

Json element(const MultiArray& array, int64_t i) {
  const double value = array.at(i);
  switch (array.type()) {
    case DataType::float16:
    case DataType::float32:
    case DataType::float64: return shortest(value, array.type());
    case DataType::boolean: return value != 0;
    case DataType::uint64: return static_cast<uint64_t>(value);
    default: return static_cast<int64_t>(value);
  }
}

Json nested(const MultiArray& array, size_t depth, int64_t& at) {
  if (depth == array.shape().size()) return element(array, at++);
  Json list = Json::array();
  for (int64_t i = 0; i < array.shape()[depth]; ++i) list.push_back(nested(array, depth + 1, at));
  return list;
}

struct ValueJson {
  Json operator()(std::monostate) const { return Json::object(); }
  Json operator()(int64_t v) const { return {{"type", "Int64"}, {"value", v}}; }
  Json operator()(double v) const { return {{"type", "Double"}, {"value", v}}; }
  Json operator()(const std::string& v) const { return {{"type", "String"}, {"value", v}}; }
  Json operator()(const MultiArray& v) const {
    int64_t at = 0;
    return {{"type", describe_in_full(v)}, {"shape", v.shape()}, {"values", nested(v, 0, at)}};
  }
  Json operator()(const Image& v) const {
    return {{"type", describe_in_full(v)}, {"width", v.width}, {"height", v.height}};
  }
  Json operator()(const PixelBuffer& v) const {
    return {{"type", describe_in_full(v)}, {"width", v.width}, {"height", v.height}};
  }
  Json operator()(const Dictionary& v) const {
    Json entries = Json::object();
    for (const auto& [key, number] : v.strings) entries[key] = number;
    for (const auto& [key, number] : v.ints) entries[std::to_string(key)] = number;
    return {{"type", describe_in_full(v)}, {"value", std::move(entries)}};
  }
  Json operator()(const StringSequence& v) const { return {{"type", "Sequence (String)"}, {"value", v}}; }
  Json operator()(const Int64Sequence& v) const { return {{"type", "Sequence (Int64)"}, {"value", v}}; }
};

void render(const Json& json, size_t indent, std::string& out) {
  const auto text = [](const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); };
  const auto scalar = [](const Json& j) { return !j.is_structured() || j.empty(); };
  const bool plain = json.is_array() && std::all_of(json.begin(), json.end(), scalar);
  if (scalar(json)) {
    out += text(json);
    return;
  }
  if (plain) {
    out += '[';
    for (size_t i = 0; i < json.size(); ++i) out += (i ? ", " : "") + text(json[i]);
    out += ']';
    return;
  }
  const std::string inner(indent + 2, ' ');
  bool first = true;
  out += json.is_object() ? '{' : '[';
  for (auto item = json.begin(); item != json.end(); ++item) {
    out += first ? "\n" : ",\n";
    first = false;
    out += inner;
    if (json.is_object()) out += text(item.key()) + ": ";
    render(*item, indent + 2, out);
  }
  out += '\n' + std::string(indent, ' ');
  out += json.is_object() ? '}' : ']';
}

}  // namespace

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const FeatureDescription& feature) {
  Json json{{"name", feature.name},
            {"type", feature.formatted_type()},
            {"kind", to_string(feature.type)},
            {"optional", feature.optional}};
  if (feature.default_value) json["default"] = finite_or_null(*feature.default_value);
  if (!feature.description.empty()) json["description"] = feature.description;
  if (feature.type == FeatureType::multi_array || feature.type == FeatureType::state) {
    json["dataType"] = to_string(feature.array.type);
    json["shape"] = feature.array.shape;
    for (const SizeRange& range : feature.array.ranges) json["shapeRange"].push_back(range_json(range));
    if (!feature.array.enumerated.empty()) json["enumeratedShapes"] = feature.array.enumerated;
  }
  if (feature.type == FeatureType::image) {
    json["width"] = feature.image.width;
    json["height"] = feature.image.height;
    json["color"] = color_name(feature.image.color);
    if (feature.image.width_range) json["widthRange"] = range_json(*feature.image.width_range);
    if (feature.image.height_range) json["heightRange"] = range_json(*feature.image.height_range);
    for (const auto& [w, h] : feature.image.enumerated) json["enumeratedSizes"].push_back(Json::array({w, h}));
  }
  return json;
}

Json to_json(const FunctionDescription& function) {
  Json json{{"name", function.name}};
  const auto list = [](const std::vector<FeatureDescription>& features) {
    Json out = Json::array();
    for (const auto& feature : features) out.push_back(to_json(feature));
    return out;
  };
  json["inputs"] = list(function.inputs);
  json["outputs"] = list(function.outputs);
  json["states"] = list(function.states);
  if (!function.predicted_feature_name.empty()) json["predictedFeatureName"] = function.predicted_feature_name;
  if (!function.predicted_probabilities_name.empty())
    json["predictedProbabilitiesName"] = function.predicted_probabilities_name;
  return json;
}

Json to_json(const PlannedOperation& operation) { return Json::parse(operation_json(operation)); }

Json to_json(const FeatureValue& value) { return std::visit(ValueJson{}, value); }

Json to_json(const Features& features) {
  Json json = Json::object();
  for (const auto& [name, value] : features) json[name] = to_json(value);
  return json;
}

std::string rendered(const Json& json) {
  std::string out;
  render(json, 0, out);
  return out + '\n';
}

}  // namespace moka::cli
