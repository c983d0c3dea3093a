// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "import/common/sampler.h"
#include "import/onnx/node.h"

/// Operators that sample an image at computed positions.
namespace moka::import::onnx {
namespace {

/// Numbers from -1 to 1 as positions along an axis of `size` elements.
Value* position(const Node& n, Value* x, int64_t size, bool align) {
  const auto s = static_cast<double>(size);
  return align ? n.mul(n.add(x, 1.0), (s - 1) / 2) : n.mul(n.add(n.mul(n.add(x, 1.0), s), -1.0), 0.5);
}

void grid_sample(Node& n) {
  Value *x = n.in(0), *grid = n.in(1);
  const Shape s = n.known_shape(x, "GridSample"), g = n.known_shape(grid, "GridSample");
  const int axes = s.rank() - 2;
  if (axes < 1 || g.rank() != s.rank() || g[g.rank() - 1] != axes)
    n.malformed(cat("a grid of type ", grid->type, " for ", x->type));
  std::string mode = n.text_or("mode", n.opset < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  Sampler sampler{n.reshape(x, {s[0], s[1], s.count(2, s.rank())}),
                  {},
                  n.text_or("padding_mode", "zeros"),
                  n.integer_or("align_corners", 0) != 0};
  const int64_t points = g.count(1, g.rank() - 1);
  Value* flat = n.reshape(grid, {g[0], points, axes});
  std::vector<Value*> positions;
  for (int a = 0; a < axes; ++a) {
    const int64_t size = s[a + 2];
    sampler.sizes.push_back(size);
    // The last coordinate is that of the first axis.
    const int64_t at = axes - 1 - a;
    Value* p = position(n, n.squeeze(n.slice(flat, 2, at, at + 1), {2}), size, sampler.align);
    // The border and the mirror hold for positions, but a cubic filter looks at each neighbor.
    if (mode != "cubic" && sampler.padding == "border") p = clamped(n, p, 0, static_cast<double>(size) - 1);
    if (mode != "cubic" && sampler.padding == "reflection")
      p = clamped(n, reflected(n, p, size, sampler.align), 0, static_cast<double>(size) - 1);
    positions.push_back(p);
  }
  if (mode != "cubic" && sampler.padding == "reflection") sampler.padding = "border";
  Value* out = sampled(n, sampler, positions, mode);
  std::vector<int64_t> dims{s[0], s[1]};
  for (int i = 1; i + 1 < g.rank(); ++i) dims.push_back(g[i]);
  n.set(0, n.reshape(out, dims));
}

/// Positions of a regular grid, as rows of homogeneous coordinates, times a matrix per image.
void affine_grid(Node& n) {
  Value* theta = n.in(0);
  const std::vector<int64_t> size = n.integers(1, "size");
  const bool align = n.integer_or("align_corners", 0) != 0;
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes < 1) n.malformed("a size of fewer than three numbers");
  constexpr int64_t most = int64_t{1} << 24;
  int64_t points = 1;
  for (size_t i = 2; i < size.size(); ++i) {
    if (size[i] < 1 || size[i] > most || (points *= size[i]) > most)
      n.unsupported(cat("a grid of ", size[i], " elements along an axis"));
  }
  Tensor base = need(Tensor::zeros(theta->type.dtype(), Shape{points, axes + 1}));
  for (int64_t i = 0; i < points; ++i) {
    int64_t rest = i;
    for (int64_t a = axes - 1; a >= 0; --a) {
      const int64_t d = size[static_cast<size_t>(a) + 2], k = rest % d;
      rest /= d;
      const auto at = static_cast<double>(k), count = static_cast<double>(d);
      const double v = align ? (d > 1 ? -1 + 2 * at / (count - 1) : 0) : -1 + (2 * at + 1) / count;
      ir::store_f64(base.view(), i * (axes + 1) + axes - 1 - a, v);
    }
    ir::store_f64(base.view(), i * (axes + 1) + axes, 1);
  }
  Value* out = n.matmul(n.constant(base), theta, false, true);
  std::vector<int64_t> dims{size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  dims.push_back(axes);
  n.set(0, n.reshape(out, dims));
}

/// The sums of overlapping blocks.
void col2im(Node& n) {
  Value* x = n.in(0);
  const Shape s = n.known_shape(x, "Col2Im");
  const std::vector<int64_t> image = n.integers(1, "image_shape"), block = n.integers(2, "block_shape");
  const size_t axes = image.size();
  const std::vector<int64_t> dilations = n.integers_or("dilations", std::vector<int64_t>(axes, 1)),
                             strides = n.integers_or("strides", std::vector<int64_t>(axes, 1)),
                             pads = n.integers_or("pads", std::vector<int64_t>(2 * axes, 0));
  int64_t inner = 1, whole = 1, count = 1;
  std::vector<int64_t> steps;
  constexpr int64_t most = int64_t{1} << 24;
  if (block.size() != axes || dilations.size() != axes || strides.size() != axes || pads.size() != 2 * axes)
    n.malformed("shapes, dilations, strides or pads of another number of axes");
  for (size_t a = 0; a < axes; ++a)
    for (const int64_t v : {image[a], block[a], dilations[a], strides[a]})
      if (v < 1 || v > most) n.malformed(cat("a size of ", v));
  for (size_t a = 0; a < axes; ++a) {
    if (inner > most || whole > most || count > most) n.unsupported("an image of more than 2^24 elements");
    inner *= block[a];
    whole *= image[a];
    steps.push_back((image[a] + pads[a] + pads[axes + a] - dilations[a] * (block[a] - 1) - 1) / strides[a] + 1);
    count *= steps.back();
  }
  if (s.rank() != 3 || s[1] % inner != 0 || s[2] != count) n.malformed(cat("blocks of type ", x->type));
  std::vector<int64_t> targets;
  for (int64_t k = 0; k < inner; ++k)
    for (int64_t l = 0; l < count; ++l) {
      int64_t at = 0, kr = k, lr = l;
      std::vector<int64_t> position(axes);
      bool inside = true;
      for (size_t a = axes; a-- > 0;) {
        position[a] = (lr % steps[a]) * strides[a] + (kr % block[a]) * dilations[a] - pads[a];
        inside &= position[a] >= 0 && position[a] < image[a];
        lr /= steps[a], kr /= block[a];
      }
      for (size_t a = 0; a < axes; ++a) at = at * image[a] + position[a];
      targets.push_back(inside ? at : whole);  // one element more takes what falls outside
    }
  const int64_t channels = s[1] / inner;
  Value* flat = n.reshape(x, {s[0] * channels, inner * count});
  Value* zeros = n.op("fill", {{"shape", Tensor::i32({s[0] * channels, whole + 1})}, n.arg("value", 0, x)});
  Value* sums = n.op(
      "scatter", {{"data", zeros}, {"indices", Tensor::i32(targets)}, {"updates", flat}, {"axis", 1}, {"mode", "add"}});
  std::vector<int64_t> dims{s[0], channels};
  dims.insert(dims.end(), image.begin(), image.end());
  n.set(0, n.reshape(n.slice(sums, 1, 0, whole), dims));
}

constexpr OperatorImport kSpatialOperators[] = {
    {"GridSample", grid_sample},
    {"AffineGrid", affine_grid},
    {"Col2Im", col2im},
};

}  // namespace

std::span<const OperatorImport> operators_spatial() { return kSpatialOperators; }

}  // namespace moka::import::onnx
