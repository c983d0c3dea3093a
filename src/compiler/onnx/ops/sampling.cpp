// SPDX-License-Identifier: Apache-2.0
#include "ops/common/sampling.h"

#include <algorithm>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

/// The sizes of the sampled image, and how positions outside of it are filled.
struct Sampled {
  int64_t height = -1, width = -1;
  std::string mode = "bilinear", padding = "constant";
  double value = 0;
};

/// GridSample takes positions from -1 to 1: of the corners' centers with align, else of the corners' edges.
/// `grid` [N, H, W, 2] holds positions in pixels.
Name from_pixels(Call& c, const Name& grid, const Sampled& s, DType t, bool align) {
  const auto pair = [&](double x, double y) {
    ir::Tensor v = c.take(ir::Tensor::uninitialized(t, {2}));
    if (c.refused()) return Name();
    ir::store_f64(v.view(), 0, x);
    ir::store_f64(v.view(), 1, y);
    return c.graph.tensor(v);
  };
  const auto w = static_cast<double>(s.width), h = static_cast<double>(s.height);
  if (align) {
    const Name scaled = c.node("Mul", {grid, pair(2 / std::max(1.0, w - 1), 2 / std::max(1.0, h - 1))});
    return c.node("Sub", {scaled, c.scalar(t, 1)});
  }
  return c.node("Add", {c.node("Mul", {grid, pair(2 / w, 2 / h)}), pair(1 / w - 1, 1 / h - 1)});
}

/// Positions from -1 to 1 in pixels.
Name to_pixels(Call& c, const Name& grid, const Sampled& s, DType t, bool align) {
  ir::Tensor factor = c.take(ir::Tensor::uninitialized(t, {2})), offset = c.take(ir::Tensor::uninitialized(t, {2}));
  if (c.refused()) return grid;
  const double size[] = {static_cast<double>(s.width), static_cast<double>(s.height)};
  for (int i = 0; i < 2; i++) {
    ir::store_f64(factor.view(), i, align ? (size[i] - 1) / 2 : size[i] / 2);
    ir::store_f64(offset.view(), i, (size[i] - 1) / 2);
  }
  return c.node("Add", {c.node("Mul", {grid, c.graph.tensor(factor)}), c.graph.tensor(offset)});
}

/// The image sampled at `grid`, of float32. Reflection at the centers of the corners needs aligned positions, at their
/// edges unaligned ones.
Name sampled(Call& c, Name grid, const Sampled& s, bool normalized, bool align) {
  const DType t = c.dtype("x"), f = DType::fp32;
  if (s.height < 1 || s.width < 1) return c.refuse("the sizes of its images are not known"), Name();
  const bool target = s.padding == "reflection" ? true : s.padding == "symmetric" ? false : normalized && align;
  if (!normalized)
    grid = from_pixels(c, grid, s, f, target);
  else if (align != target)
    grid = from_pixels(c, to_pixels(c, grid, s, f, align), s, f, target);
  Name x = t == f ? c.x() : c.cast(c.x(), f);
  const bool filled = s.padding == "constant" && s.value != 0;
  if (filled) x = c.node("Sub", {x, c.scalar(f, s.value)});
  const char* padding = s.padding == "constant" ? "zeros" : s.padding == "border" ? "border" : "reflection";
  const bool nearest = s.mode == "nearest";
  constexpr int renamed = 20;
  const char* mode = nearest ? "nearest" : c.graph.opset() >= renamed ? "linear" : "bilinear";
  Name y = c.node("GridSample", {x, grid},
                  {attr("align_corners", target), attr("mode", mode), attr("padding_mode", padding)});
  if (filled) y = c.node("Add", {y, c.scalar(f, s.value)});
  return t == f ? y : c.cast(y, t);
}

Sampled settings(Call& c) {
  Sampled s;
  if (!c.type("x").is_ranked() || c.type("x").rank() != 4) return c.refuse("images of rank 4 are expected"), s;
  s.height = c.type("x").shape()[2];
  s.width = c.type("x").shape()[3];
  s.mode = c.text("sampling_mode");
  s.padding = c.text("padding_mode");
  s.value = c.number("padding_value");
  return s;
}

void resample(Call& c) {
  const Sampled s = settings(c);
  const std::string how = c.text("coordinates_mode");
  Name grid = c.x_as("coordinates", DType::fp32);
  if (c.refused()) return;
  if (how == "normalized_zero_to_one") {
    grid = c.node("Sub", {c.node("Mul", {grid, c.scalar(DType::fp32, 2)}), c.scalar(DType::fp32, 1)});
  }
  c.set(sampled(c, grid, s, how != "unnormalized", c.flag("align_corners")));
}

/// The grid of the result's positions, transformed.
void affine(Call& c) {
  const Sampled s = settings(c);
  const int64_t h = c.integer("output_height"), w = c.integer("output_width");
  const bool align = c.flag("align_corners");
  if (c.refused()) return;
  if (c.text("coordinates_mode") != "normalized_minus_one_to_one")
    return c.refuse("positions from -1 to 1 are expected");
  ir::Tensor base = c.take(ir::Tensor::uninitialized(DType::fp32, {h * w, 3}));
  if (c.refused()) return;
  const auto position = [align](int64_t i, int64_t n) {
    const auto at = static_cast<double>(i), size = static_cast<double>(n);
    if (align) return n == 1 ? 0.0 : 2 * at / (size - 1) - 1;
    return (2 * at + 1) / size - 1;
  };
  for (int64_t i = 0; i < h * w; i++) {
    ir::store_f64(base.view(), 3 * i, position(i % w, w));
    ir::store_f64(base.view(), 3 * i + 1, position(i / w, h));
    ir::store_f64(base.view(), 3 * i + 2, 1);
  }
  Name matrices = c.reshape(c.x_as("transform_matrix", DType::fp32), {-1, 2, 3});
  // One matrix may serve all images; GridSample wants one for each.
  const int64_t images = c.type("x").shape()[0];
  const ir::Type& given = c.type("transform_matrix");
  if (images != 1 && given.is_ranked() && given.shape()[0] == 1) {
    if (images < 0) return c.refuse("the number of images that share a matrix is not known");
    matrices = c.node("Expand", {matrices, c.i64({images, 2, 3})});
  }
  const Name moved = c.node("MatMul", {c.graph.tensor(base), c.transpose(matrices, {0, 2, 1})});
  c.set(sampled(c, c.reshape(moved, {-1, h, w, 2}), s, true, align));
}

}  // namespace

std::span<const OpWriter> writers_sampling();
std::span<const OpWriter> writers_sampling() {
  static constexpr OpWriter list[] = {{"resample", resample}, {"affine", affine}};
  return list;
}

}  // namespace moka::compiler::onnx
