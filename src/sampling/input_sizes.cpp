// SPDX-License-Identifier: Apache-2.0
#include "moka/input_sizes.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace moka {
namespace {

constexpr size_t kMostCorners = 32;  ///< of one input
using Shape = std::vector<int64_t>;

int64_t upper_of(const SizeRange& range, int64_t usual) {
  return range.upper >= 0 ? range.upper : std::max(2 * usual, range.lower);
}

void add(std::vector<Shape>& to, const Shape& shape) {
  if (std::find(to.begin(), to.end(), shape) == to.end()) to.push_back(shape);
}

/// Height and width for images.
std::vector<Shape> shapes_of(const FeatureDescription& f) {
  std::vector<Shape> out;
  std::vector<SizeRange> ranges;
  Shape usual;
  if (f.type == FeatureType::image) {
    usual = {f.image.height, f.image.width};
    out.push_back(usual);
    for (const auto& [width, height] : f.image.enumerated) add(out, {height, width});
    if (!f.image.enumerated.empty()) return out;
    ranges = {f.image.height_range.value_or(SizeRange{usual[0], usual[0]}),
              f.image.width_range.value_or(SizeRange{usual[1], usual[1]})};
  } else if (f.type == FeatureType::multi_array) {
    usual = f.array.shape;
    out.push_back(usual);
    for (const Shape& shape : f.array.enumerated) add(out, shape);
    if (!f.array.enumerated.empty() || f.array.ranges.size() != usual.size()) return out;
    ranges = f.array.ranges;
  } else {
    return out;
  }
  std::vector<Shape> corners{usual};
  for (size_t axis = 0; axis < ranges.size(); ++axis) {
    if (ranges[axis].lower == ranges[axis].upper) continue;
    std::vector<Shape> next;
    for (const Shape& shape : corners)
      for (const int64_t size : {std::max<int64_t>(ranges[axis].lower, 1), upper_of(ranges[axis], usual[axis])}) {
        Shape corner = shape;
        corner[axis] = size;
        add(next, corner);
      }
    corners = std::move(next);
    if (corners.size() > kMostCorners) corners.resize(kMostCorners);
  }
  for (const Shape& corner : corners) add(out, corner);
  return out;
}

void set(FeatureDescription& f, const Shape& shape) {
  if (f.type == FeatureType::image) {
    f.image.height = shape[0];
    f.image.width = shape[1];
  } else {
    f.array.shape = shape;
  }
}

std::string name_of(const FunctionDescription& function) {
  std::string out;
  for (const FeatureDescription& f : function.inputs) {
    const bool image = f.type == FeatureType::image;
    if (!image && f.type != FeatureType::multi_array) continue;
    const Shape shape = image ? Shape{f.image.height, f.image.width} : f.array.shape;
    out += (out.empty() ? "" : ", ") + f.name;
    for (size_t i = 0; i < shape.size(); ++i) out += cat(i == 0 ? " " : " x ", shape[i]);
    if (shape.empty()) out += " scalar";
  }
  return out;
}

}  // namespace

std::vector<ShapeChoice> shape_choices(const FunctionDescription& function, bool all) {
  std::vector<ShapeChoice> out;
  std::set<std::string> known;
  const auto take = [&](const FunctionDescription& f) {
    std::string name = name_of(f);
    if (known.insert(name).second) out.push_back({std::move(name), f});
  };
  take(function);
  if (!all) return out;
  std::vector<std::vector<Shape>> shapes;
  size_t most = 0;
  for (const FeatureDescription& f : function.inputs) {
    shapes.push_back(shapes_of(f));
    most = std::max(most, shapes.back().size());
  }
  // Inputs with equally many shapes change together, as the sizes of a model's inputs usually depend on each other.
  for (size_t i = 1; i < most; ++i) {
    FunctionDescription f = function;
    for (size_t n = 0; n < shapes.size(); ++n)
      if (shapes[n].size() == most) set(f.inputs[n], shapes[n][i]);
    take(f);
  }
  for (size_t n = 0; n < shapes.size(); ++n)
    for (size_t i = 1; i < shapes[n].size() && shapes[n].size() != most; ++i) {
      FunctionDescription f = function;
      set(f.inputs[n], shapes[n][i]);
      take(f);
    }
  return out;
}

}  // namespace moka
