// SPDX-License-Identifier: Apache-2.0
#include "drawing/preview.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "drawing/detections.h"
#include "files/text.h"

namespace moka::drawing {
namespace {

constexpr size_t kMostClasses = 5;
/// The least rows and columns of an array that is shown as a map.
constexpr int64_t kLeastMap = 8;
/// Channels of one array that are shown as maps.
constexpr int64_t kMostMaps = 32;

/// The preview metadata of a model.
struct Metadata {
  std::string type;
  std::vector<std::string> labels;
  std::vector<Color> colors;
};

std::optional<Color> color_of_hex(const std::string& text) {
  uint32_t rgb = 0;
  if (text.size() != 7 || text[0] != '#') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + 7, rgb, 16);
  if (error != std::errc() || end != text.data() + 7) return std::nullopt;
  return Color{static_cast<uint8_t>(rgb >> 16), static_cast<uint8_t>(rgb >> 8), static_cast<uint8_t>(rgb)};
}

Metadata metadata_of(const ModelDescription& model) {
  Metadata out;
  if (const auto type = model.user_defined.find("com.apple.coreml.model.preview.type");
      type != model.user_defined.end())
    out.type = files::in_lower_case(type->second);
  const auto parameters = model.user_defined.find("com.apple.coreml.model.preview.parameters");
  if (parameters == model.user_defined.end()) return out;
  const nlohmann::json json = nlohmann::json::parse(parameters->second, nullptr, false);
  if (!json.is_object()) return out;
  for (const nlohmann::json& label : json.value("labels", nlohmann::json::array()))
    out.labels.push_back(label.is_string() ? label.get<std::string>() : label.dump());
  for (const nlohmann::json& color : json.value("colors", nlohmann::json::array()))
    out.colors.push_back(color.is_string() ? color_of_hex(color.get<std::string>()).value_or(Color{}) : Color{});
  return out;
}

std::vector<ClassScore> top_classes(const Dictionary& scores) {
  std::vector<ClassScore> out;
  for (const auto& [label, probability] : scores.strings) out.push_back({label, probability});
  for (const auto& [label, probability] : scores.ints) out.push_back({std::to_string(label), probability});
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.probability > b.probability || (std::isnan(b.probability) && !std::isnan(a.probability));
  });
  if (out.size() > kMostClasses) out.resize(kMostClasses);
  return out;
}

/// The shape without leading ones.
std::vector<int64_t> squeezed(const MultiArray& array) {
  std::vector<int64_t> shape = array.shape();
  while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

Map map_of(std::string name, const MultiArray& array, int64_t first, int64_t height, int64_t width) {
  Map map{std::move(name), width, height, {}, 0, 0};
  map.values.reserve(static_cast<size_t>(width * height));
  bool any = false;
  for (int64_t i = 0; i < width * height; ++i) {
    const double v = array.at(first + i);
    map.values.push_back(static_cast<float>(v));
    if (!std::isfinite(v)) continue;
    map.least = any ? std::min(map.least, v) : v;
    map.most = any ? std::max(map.most, v) : v;
    any = true;
  }
  return map;
}

bool is_whole(const MultiArray& array) { return array.type() >= DataType::int8 && array.type() <= DataType::boolean; }

/// A class per cell: whole numbers in a plane, or the greatest of several planes of scores.
std::optional<Segments> segments_of(const std::string& name, const MultiArray& array, const Metadata& metadata) {
  const std::vector<int64_t> shape = squeezed(array);
  if (shape.size() != 2 && shape.size() != 3) return std::nullopt;
  const int64_t planes = shape.size() == 3 ? shape[0] : 1;
  const int64_t height = shape[shape.size() - 2], width = shape[shape.size() - 1], cells = height * width;
  Segments out{name, width, height, {}, metadata.labels, metadata.colors};
  out.classes.reserve(static_cast<size_t>(cells));
  for (int64_t i = 0; i < cells; ++i) {
    if (planes == 1) {
      const double v = array.at(i);
      // In one plane of scores, a cell belongs to the class if its score exceeds 0.5.
      out.classes.push_back(is_whole(array) ? static_cast<uint32_t>(std::clamp(v, 0.0, 65535.0)) : v > 0.5);
      continue;
    }
    int64_t best = 0;
    for (int64_t p = 1; p < planes; ++p)
      if (array.at(p * cells + i) > array.at(best * cells + i)) best = p;
    out.classes.push_back(static_cast<uint32_t>(best));
  }
  return out;
}

/// The maximum of each plane.
std::vector<KeyPoint> points_of(const MultiArray& array) {
  const std::vector<int64_t> shape = squeezed(array);
  std::vector<KeyPoint> out;
  if (shape.size() != 3) return out;
  const int64_t cells = shape[1] * shape[2];
  for (int64_t p = 0; p < shape[0]; ++p) {
    int64_t best = 0;
    for (int64_t i = 1; i < cells; ++i)
      if (array.at(p * cells + i) > array.at(p * cells + best)) best = i;
    out.push_back({(static_cast<double>(best % shape[2]) + 0.5) / static_cast<double>(shape[2]),
                   (static_cast<double>(best / shape[2]) + 0.5) / static_cast<double>(shape[1]),
                   array.at(p * cells + best)});
  }
  return out;
}

/// Three planes of colors from 0 to 1, or from 0 to 255.
std::optional<Image> picture_in(const MultiArray& array, const std::vector<int64_t>& shape) {
  constexpr int64_t kLeastSide = 32, kMostSide = 65536;
  if (shape.size() != 3 || shape[0] != 3 || shape[1] < kLeastSide || shape[2] < kLeastSide || shape[1] > kMostSide ||
      shape[2] > kMostSide)
    return std::nullopt;
  const int64_t cells = shape[1] * shape[2];
  double least = array.at(0), most = least;
  for (int64_t i = 0; i < 3 * cells; ++i) {
    const double v = array.at(i);
    if (!std::isfinite(v)) return std::nullopt;
    least = std::min(least, v);
    most = std::max(most, v);
  }
  const double range = most <= 1.5 ? 1 : 255;  // with some room for values that overshoot
  if (least < -0.25 * range || most > 1.25 * range || most - least < 0.02 * range) return std::nullopt;
  Image out(shape[2], shape[1], PixelFormat::rgb8);
  for (int64_t i = 0; i < cells; ++i)
    for (int64_t c = 0; c < 3; ++c)
      out.pixels.get()[(i / shape[2]) * out.row_bytes + (i % shape[2]) * 3 + c] =
          static_cast<uint8_t>(std::lround(std::clamp(array.at(c * cells + i) / range, 0.0, 1.0) * 255));
  return out;
}

bool contains(const std::string& text, std::string_view part) {
  return files::in_lower_case(text).find(part) != std::string::npos;
}

bool is_pose(const std::string& name, const Metadata& metadata) {
  return metadata.type == "poseestimation" ? !contains(name, "offset") && !contains(name, "displacement")
                                           : contains(name, "heatmap") || contains(name, "pose");
}

/// The most probable classes of a vector that sums to 1. Without class labels, a class is named by its position.
std::vector<ClassScore> scores_in(const MultiArray& array, const std::vector<std::string>& labels) {
  constexpr int64_t kMostElements = 100'000;
  const auto& shape = array.shape();
  std::vector<ClassScore> out;
  if (array.count() < 2 || array.count() > kMostElements ||
      *std::max_element(shape.begin(), shape.end()) != array.count())
    return out;
  double sum = 0;
  for (int64_t i = 0; i < array.count(); ++i) {
    const double v = array.at(i);
    if (!(v >= 0 && v <= 1)) return {};
    const auto index = static_cast<size_t>(i);
    out.push_back({labels.size() == static_cast<size_t>(array.count()) ? labels[index] : std::to_string(i), v});
    sum += v;
  }
  if (std::abs(sum - 1) > 0.01) return {};
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.probability > b.probability; });
  if (out.size() > kMostClasses) out.resize(kMostClasses);
  return out;
}

void add_array(Preview& out, const std::string& name, const MultiArray& array, const Metadata& metadata,
               bool has_image) {
  const std::vector<int64_t> shape = squeezed(array);
  if (shape.size() < 2 || shape.size() > 3 || array.count() == 0) return;
  const int64_t height = shape[shape.size() - 2], width = shape[shape.size() - 1];
  const int64_t planes = shape.size() == 3 ? shape[0] : 1;
  if (height < kLeastMap || width < kLeastMap) return;
  if (has_image && metadata.type == "imagesegmenter") {
    if (auto segments = segments_of(name, array, metadata)) out.segments.push_back(std::move(*segments));
    return;
  }
  if (has_image && planes > 1 && is_pose(name, metadata)) {
    out.points = points_of(array);
    return;
  }
  if (auto picture = picture_in(array, shape)) {
    out.images.push_back(std::move(*picture));
    return;
  }
  for (int64_t p = 0; p < std::min(planes, kMostMaps); ++p)
    out.maps.push_back(
        map_of(planes == 1 ? name : name + " " + std::to_string(p), array, p * height * width, height, width));
}

}  // namespace

bool Preview::empty() const {
  return classes.empty() && boxes.empty() && points.empty() && segments.empty() && maps.empty() && images.empty();
}

Preview preview_of(const Features& outputs, const ModelDescription& model, const FunctionDescription& function,
                   int64_t image_width, int64_t image_height) {
  Preview out;
  const Metadata metadata = metadata_of(model);
  const bool has_image = image_width > 0 && image_height > 0;
  std::vector<std::string> used;
  if (has_image) out.boxes = detections_of(outputs, model, image_width, image_height, used);
  out.has_detector = !used.empty();
  const FeatureValue* predicted = outputs.find(function.predicted_feature_name);
  for (const auto& [name, value] : outputs) {
    if (std::find(used.begin(), used.end(), name) != used.end()) continue;
    if (const auto* scores = std::get_if<Dictionary>(&value); scores && out.classes.empty())
      out.classes = top_classes(*scores);
    else if (const auto* image = std::get_if<Image>(&value))
      out.images.push_back(*image);
    else if (const auto* array = std::get_if<MultiArray>(&value))
      add_array(out, name, *array, metadata, has_image);
  }
  for (const auto& [name, value] : outputs) {
    const auto* array = std::get_if<MultiArray>(&value);
    if (array && out.classes.empty() && std::find(used.begin(), used.end(), name) == used.end())
      out.classes = scores_in(*array, model.class_labels.empty() ? names_in_metadata(model) : model.class_labels);
  }
  if (out.classes.empty() && predicted) {
    if (const auto* label = std::get_if<std::string>(predicted)) out.classes = {{*label, 1}};
    if (const auto* label = std::get_if<int64_t>(predicted)) out.classes = {{std::to_string(*label), 1}};
  }
  return out;
}

}  // namespace moka::drawing
