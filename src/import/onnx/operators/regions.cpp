// SPDX-License-Identifier: Apache-2.0
#include "import/common/sampler.h"
#include "import/onnx/operators/window.h"

/// Operators that sample an image in regions that are computed.
namespace moka::import::onnx {
namespace {

/// Sizes and positions of a convolution's windows.
struct Windows {
  std::vector<int64_t> kernel, strides, dilations, pads, out;
};

/// Where the windows read without offsets, along one axis: [kernel elements, output elements].
Tensor positions_of(const Windows& w, size_t axis, DType type) {
  const int64_t kernel = w.kernel[0] * w.kernel[1], points = w.out[0] * w.out[1];
  Tensor t = need(Tensor::zeros(type, Shape{kernel, points}));
  for (int64_t k = 0; k < kernel; ++k)
    for (int64_t p = 0; p < points; ++p) {
      const int64_t tap = axis == 0 ? k / w.kernel[1] : k % w.kernel[1];
      const int64_t at = axis == 0 ? p / w.out[1] : p % w.out[1];
      const int64_t v = at * w.strides[axis] + tap * w.dilations[axis] - w.pads[axis];
      ir::store_f64(t.view(), k * points + p, static_cast<double>(v));
    }
  return t;
}

/// A convolution whose windows read at offsets that are computed: the image is sampled, and a convolution of 1 x 1
/// sums.
void deform_conv(Node& n) {
  Value *x = n.in(0), *weight = n.in(1), *offset = n.in(2);
  const Shape s = n.known_shape(x, "DeformConv"), w = n.known_shape(weight, "DeformConv"),
              o = n.known_shape(offset, "DeformConv");
  if (s.rank() != 4 || w.rank() != 4 || o.rank() != 4) n.unsupported("DeformConv of other than two axes");
  const Windows windows{{w[2], w[3]},
                        n.integers_or("strides", {1, 1}),
                        n.integers_or("dilations", {1, 1}),
                        n.integers_or("pads", {0, 0, 0, 0}),
                        {o[2], o[3]}};
  if (windows.strides.size() != 2 || windows.dilations.size() != 2 || windows.pads.size() != 4)
    n.malformed("strides, dilations or pads of another number of axes");
  const int64_t groups = n.integer_or("offset_group", 1), kernel = w[2] * w[3], points = o[2] * o[3];
  constexpr int64_t most = int64_t{1} << 26;
  if (groups < 1 || s[1] % groups != 0 || o[0] != s[0] || kernel < 1 || o[1] % (2 * kernel) != 0 ||
      o[1] / (2 * kernel) != groups)
    n.malformed(cat("offsets of type ", offset->type, " for ", groups, " groups and a weight of type ", weight->type));
  if (points > most / kernel) n.unsupported(cat("a DeformConv that reads ", points, " x ", kernel, " positions"));
  const int64_t images = s[0] * groups, channels = s[1] / groups;
  const Sampler sampler{n.reshape(x, {images, channels, s[2] * s[3]}), {s[2], s[3]}, "zeros", false};
  Value* offsets = n.reshape(offset, {images, kernel, 2, points});
  std::vector<Value*> at;
  for (int64_t axis = 0; axis < 2; ++axis) {
    Value* moved = n.squeeze(n.slice(offsets, 2, axis, axis + 1), {2});
    moved = n.add(moved, n.constant(positions_of(windows, static_cast<size_t>(axis), x->type.dtype())));
    at.push_back(n.reshape(moved, {images, kernel * points}));
  }
  Value* read = sampled(n, sampler, at, "linear");
  if (n.has(4)) read = n.mul(read, n.reshape(n.in(4), {images, 1, kernel * points}));
  Value* out = n.op("conv", {{"x", n.reshape(read, {s[0], s[1] * kernel, o[2], o[3]})},
                             {"weight", n.reshape(weight, {w[0], w[1] * kernel, 1, 1})},
                             {"pad_type", "valid"},
                             {"groups", static_cast<int>(n.integer_or("group", 1))}});
  n.set(0, n.has(3) ? with_bias(n, out, n.in(3)) : out);
}

/// Parts of images, resized to one size: each element is the mean or maximum of a grid of samples.
void roi_align(Node& n) {
  Value *x = n.in(0), *rois = n.in(1);
  const Shape s = n.known_shape(x, "RoiAlign"), r = n.known_shape(rois, "RoiAlign");
  if (s.rank() != 4 || r.rank() != 2 || r[1] != 4) n.malformed(cat("regions of type ", rois->type, " in ", x->type));
  const int64_t samples = n.integer_or("sampling_ratio", 0);
  const std::vector<int64_t> size{n.integer_or("output_height", 1), n.integer_or("output_width", 1)};
  constexpr int64_t most = 4096;
  for (const int64_t v : {samples, size[0], size[1]})
    if (v < 1 || v > most)
      n.unsupported(cat("sampling_ratio ", samples, " and an output of ", size[0], " x ", size[1],
                        ": expected numbers from 1 to ", most, ", since the regions are known only when it runs"));
  const bool half =
      n.text_or("coordinate_transformation_mode", n.opset < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  Value* scaled = n.add(n.mul(rois, static_cast<double>(n.number_or("spatial_scale", 1))), half ? -0.5 : 0.0);
  std::vector<Value*> at;
  Value* inside = nullptr;
  for (const int64_t axis : {0, 1}) {
    const int64_t count = size[static_cast<size_t>(axis)] * samples;
    Tensor steps = need(Tensor::zeros(x->type.dtype(), Shape{1, count}));
    for (int64_t i = 0; i < count; ++i)
      ir::store_f64(steps.view(), i, (static_cast<double>(i) + 0.5) / static_cast<double>(samples));
    // A row is x1, y1, x2, y2.
    Value* begin = n.slice(scaled, 1, 1 - axis, 2 - axis);
    Value* extent = n.sub(n.slice(scaled, 1, 3 - axis, 4 - axis), begin);
    if (!half) extent = n.binary("maximum", extent, n.scalar(1, extent));
    Value* bin = n.mul(extent, 1 / static_cast<double>(size[static_cast<size_t>(axis)]));
    Value* p = n.add(begin, n.mul(bin, n.constant(steps)));
    const auto limit = static_cast<double>(s[static_cast<int>(axis) + 2]);
    Value* here = n.binary("logical_and", n.binary("greater_equal", p, n.scalar(-1, p)),
                           n.binary("less_equal", p, n.scalar(limit, p)));
    // Each row of samples has all columns.
    const auto spread = [&](Value* v) {
      const std::vector<int64_t> reps =
          axis == 0 ? std::vector<int64_t>{1, 1, size[1] * samples} : std::vector<int64_t>{1, size[0] * samples, 1};
      Value* wide = n.op("tile", {{"x", n.expand_dims(v, {axis == 0 ? 2 : 1})}, {"reps", Tensor::i32(reps)}});
      return n.reshape(wide, {r[0], size[0] * samples * size[1] * samples});
    };
    at.push_back(spread(clamped(n, p, 0, limit - 1)));
    Value* mask = spread(n.cast(here, p->type.dtype()));
    inside = inside == nullptr ? mask : n.mul(inside, mask);
  }
  Value* images = n.op("gather", {{"x", x}, {"indices", n.in(2)}, {"axis", 0}});
  const Sampler sampler{n.reshape(images, {r[0], s[1], s[2] * s[3]}), {s[2], s[3]}, "border", true};
  const bool is_max = n.text_or("mode", "avg") == "max";
  const std::vector<Value*> parts = weighted_neighbors(n, sampler, at, "linear");
  Value* v = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) v = n.binary(is_max ? "maximum" : "add", v, parts[i]);
  v = n.mul(v, n.expand_dims(inside, {1}));
  const std::string_view reduce = is_max ? "reduce_max" : "reduce_mean";
  v = n.reduce(reduce, n.reshape(v, {r[0] * s[1], size[0], samples, size[1] * samples}), {2}, false);
  v = n.reduce(reduce, n.reshape(v, {r[0] * s[1] * size[0], size[1], samples}), {2}, false);
  n.set(0, n.reshape(v, {r[0], s[1], size[0], size[1]}));
}

constexpr OperatorImport kRegionsOperators[] = {
    {"DeformConv", deform_conv},
    {"RoiAlign", roi_align},
};

}  // namespace

std::span<const OperatorImport> operators_regions() { return kRegionsOperators; }

}  // namespace moka::import::onnx
