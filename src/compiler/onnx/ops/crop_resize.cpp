// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/call.h"
#include "ops/common/sampling.h"

namespace moka::compiler::onnx {
namespace {

using ops::Sampling;
constexpr DType f = DType::fp32;

Name vector(Call& c, const std::vector<double>& v) {
  ir::Tensor t = c.take(ir::Tensor::uninitialized(f, {static_cast<int64_t>(v.size())}));
  if (c.refused()) return {};
  for (size_t i = 0; i < v.size(); i++) ir::store_f64(t.view(), static_cast<int64_t>(i), v[i]);
  return c.graph.tensor(t);
}

/// One axis of all boxes: the weight of each element of the image for each sample, and which samples are inside.
struct Side {
  Name weights;  ///< [N, samples, size]
  Name inside;   ///< [N, samples]
};

/// `start` and `end` [N, 1]: the first and last element of each box.
Side side(Call& c, const Name& start, const Name& end, int64_t size, int64_t samples, Sampling mode) {
  const Name difference = c.node("Sub", {end, start});
  Name length = c.node("Abs", {difference});
  if (mode == Sampling::offset_corners) length = c.node("Max", {length, c.scalar(f, 1)});
  // Samples are at factor * length + offset from the start.
  std::vector<double> factor, offset, elements;
  for (int64_t i = 0; i < samples; i++) {
    const double at_zero = ops::grid_point(mode, 1, samples, i);
    const double at_one = ops::grid_point(mode, 2, samples, i);
    const bool scaled = mode == Sampling::offset_corners;
    factor.push_back(scaled ? at_one : at_one - at_zero);
    offset.push_back(scaled ? 0 : at_zero);
  }
  for (int64_t i = 0; i < size; i++) elements.push_back(static_cast<double>(i));
  const Name from_start = c.node("Add", {c.node("Mul", {length, vector(c, factor)}), vector(c, offset)});
  const Name forward = c.node("GreaterOrEqual", {end, start});
  const Name at = c.node("Where", {forward, c.node("Add", {start, from_start}), c.node("Sub", {start, from_start})});
  constexpr double slack = 1e-5;  // tolerance for positions that are outside only because of rounding
  const auto last = static_cast<double>(size - 1);
  const Name low = c.node("GreaterOrEqual", {at, c.scalar(f, -slack)});
  const Name high = c.node("LessOrEqual", {at, c.scalar(f, last + slack)});
  const Name near = c.unsqueeze(c.node("Clip", {at, c.scalar(f, 0), c.scalar(f, last)}), {2});
  const Name distance = c.node("Abs", {c.node("Sub", {near, vector(c, elements)})});
  const Name weights = c.node("Relu", {c.node("Sub", {c.scalar(f, 1), distance})});
  return {weights, c.node("And", {low, high})};
}

/// Interpolates bilinearly: multiplies the image by a matrix of weights on each side.
void crop_resize(Call& c) {
  const bool apart = c.op.version().since >= ir::Opset::ios17;
  const char* const param = apart ? "boxes" : "roi";
  const std::string order = c.text("box_coordinate_mode");
  const Sampling mode = c.take(ops::sampling_of(c.known()), Sampling::default_);
  const int64_t height = c.integer("target_height"), width = c.integer("target_width");
  if (!c.type("x").is_ranked() || !c.type(param).is_ranked()) return c.refuse("the rank of its inputs is not known");
  const ir::Shape& s = c.type("x").shape();
  const int64_t entries = apart ? 4 : c.type(param).shape()[2];
  if (s[2] < 1 || s[3] < 1 || entries < 4) return c.refuse("the sizes of its images are not known");
  Name boxes = c.x_as(param, f);
  if (!apart) boxes = c.reshape(boxes, {-1, entries});
  const Name images = c.refused() ? Name() : boxes;
  Name corners = entries == 5 ? c.slice(boxes, 1, 1, 5) : boxes;
  if (c.number("spatial_scale") != 1) corners = c.node("Mul", {corners, c.scalar(f, c.number("spatial_scale"))});
  const auto v = c.nodes("Split", {corners, c.i64({1, 1, 1, 1})}, {attr("axis", 1)}, 4);
  const size_t h = order.find("HEIGHT_FIRST") != std::string::npos ? 0 : 1, w = 1 - h;
  Name from[2] = {v[h], v[w]}, to[2] = {v[h + 2], v[w + 2]};
  const int64_t sizes[2] = {s[2], s[3]}, samples[2] = {height, width};
  Side sides[2];
  for (int i = 0; i < 2; i++) {
    if (order.starts_with("CENTER_SIZE")) {
      const Name half = c.node("Mul", {to[i], c.scalar(f, 0.5)}), middle = from[i];
      from[i] = c.node("Sub", {middle, half});
      to[i] = c.node("Add", {middle, half});
    }
    if (c.flag("normalized_coordinates")) {
      const Name last = c.scalar(f, static_cast<double>(sizes[i] - 1));
      from[i] = c.node("Mul", {from[i], last});
      to[i] = c.node("Mul", {to[i], last});
    }
    sides[i] = side(c, from[i], to[i], sizes[i], samples[i], mode);
  }
  const bool every = !apart && entries == 4;
  Name x = c.x();
  const DType t = c.dtype("x");
  if (t != f) x = c.cast(x, f);
  if (entries == 5) {
    x = c.node("Gather", {x, c.cast(c.reshape(c.slice(images, 1, 0, 1), {-1}), DType::int64)}, {attr("axis", 0)});
  } else if (apart && c.has("box_indices")) {
    Name at = c.int64("box_indices");
    if (ir::is_float(c.dtype("box_indices"))) at = c.cast(c.x("box_indices"), DType::int64);
    x = c.node("Gather", {x, at}, {attr("axis", 0)});
  } else if (apart) {
    const Name count = c.node("Shape", {boxes}, {attr("start", 0), attr("end", 1)});
    x = c.node("Slice", {x, c.i64({0}), count, c.i64({0})});
  }
  // [N, channels, height, width], or for the images of all boxes [N, batch, channels, height, width].
  const std::vector<int64_t> ahead = every ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1};
  const int64_t last = every ? 4 : 3;
  const auto spread = [&](const Name& mask, int64_t axis) {
    std::vector<int64_t> axes = ahead;
    axes.push_back(axis);
    return c.unsqueeze(mask, axes);
  };
  const Name rows = c.unsqueeze(sides[0].weights, ahead);
  const Name columns = c.unsqueeze(c.transpose(sides[1].weights, {0, 2, 1}), ahead);
  Name y = c.node("MatMul", {c.node("MatMul", {rows, x}), columns});
  const Name inside = c.node("And", {spread(sides[0].inside, last), spread(sides[1].inside, last - 1)});
  const double pad = c.op.version().param_index("pad_value") >= 0 ? c.number("pad_value") : 0;
  y = c.node("Where", {inside, y, c.scalar(f, pad)});
  if (entries == 5) y = c.unsqueeze(y, {1});
  c.set(t == f ? y : c.cast(y, t));
}

}  // namespace

std::span<const OpWriter> writers_crop_resize();
std::span<const OpWriter> writers_crop_resize() {
  static constexpr OpWriter list[] = {{"crop_resize", crop_resize}};
  return list;
}

}  // namespace moka::compiler::onnx
