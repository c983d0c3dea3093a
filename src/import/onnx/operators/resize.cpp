// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// The arguments of a Resize for one axis.
struct Axis {
  int64_t in = 0, out = 0;
  double scale = 1, begin = 0, end = 1;
};

/// How a whole Resize samples.
struct Sampling {
  std::string coordinates, mode, nearest;
  double cubic = -0.75, outside = 0;
  bool antialias = false, exclude_outside = false;
};

/// The position in the input of element `i` of the result.
double position(const Sampling& s, const Axis& a, int64_t i) {
  const auto x = static_cast<double>(i);
  const auto in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  const double exact = a.scale * in;  // before it is rounded to a size
  if (s.coordinates == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (s.coordinates == "half_pixel_symmetric") {
    const double whole = a.scale * in, adjustment = out / whole, center = in / 2;
    return center * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  if (s.coordinates == "pytorch_half_pixel") return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
  if (s.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (s.coordinates == "align_corners") return a.out > 1 ? x * (in - 1) / (exact - 1) : 0;
  if (s.coordinates == "tf_crop_and_resize")
    return a.out > 1 ? a.begin * (in - 1) + x * (a.end - a.begin) * (in - 1) / (out - 1)
                     : 0.5 * (a.begin + a.end) * (in - 1);
  return x / a.scale;  // asymmetric
}

int64_t nearest(const Sampling& s, double x) {
  if (s.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (s.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (s.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));  // round_prefer_floor
}

double linear_weight(double d) { return std::max(0.0, 1 - std::abs(d)); }

double cubic_weight(double a, double d) {
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// The weights of an axis as a matrix [out, in]: every Resize is a product with one matrix per axis.
Tensor weights_of(const Sampling& s, const Axis& a, DType type) {
  std::vector<double> rows(static_cast<size_t>(a.in * a.out), 0);
  for (int64_t i = 0; i < a.out; ++i) {
    const double x = position(s, a, i);
    double* row = rows.data() + i * a.in;
    if (s.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1))) continue;
    const auto put = [&](int64_t at, double w) {
      if (s.exclude_outside && (at < 0 || at >= a.in)) return;
      row[std::clamp<int64_t>(at, 0, a.in - 1)] += w;
    };
    if (s.mode == "nearest") {
      put(nearest(s, x), 1);
      continue;
    }
    const bool cubic = s.mode == "cubic";
    // Antialiasing widens the filter of a smaller result.
    const double stretch = s.antialias ? std::min(a.scale, 1.0) : 1;
    const double reach = (cubic ? 2 : 1) / stretch;
    const auto first = static_cast<int64_t>(std::floor(x - reach)), last = static_cast<int64_t>(std::ceil(x + reach));
    double sum = 0;
    for (int64_t at = first; at <= last; ++at) {
      const double d = (static_cast<double>(at) - x) * stretch;
      const double w = cubic ? cubic_weight(s.cubic, d) : linear_weight(d);
      if (!s.exclude_outside || (at >= 0 && at < a.in)) sum += w;
    }
    for (int64_t at = first; at <= last; ++at) {
      const double d = (static_cast<double>(at) - x) * stretch;
      const double w = cubic ? cubic_weight(s.cubic, d) : linear_weight(d);
      const bool scaled = s.antialias || s.exclude_outside;
      if (w != 0) put(at, scaled && sum != 0 ? w / sum : w);
    }
  }
  Tensor out = need(Tensor::zeros(type, Shape{a.out, a.in}));
  for (size_t i = 0; i < rows.size(); ++i) ir::store_f64(out.view(), static_cast<int64_t>(i), rows[i]);
  return out;
}

/// A mask of the elements that lie inside, for extrapolation.
Tensor inside_of(const Sampling& s, const Axis& a, DType type) {
  Tensor out = need(Tensor::zeros(type, Shape{a.out}));
  for (int64_t i = 0; i < a.out; ++i) {
    const double x = position(s, a, i);
    ir::store_f64(out.view(), i, x >= 0 && x <= static_cast<double>(a.in - 1) ? 1 : 0);
  }
  return out;
}

Value* along(const Node& n, Value* x, int64_t axis, const Tensor& weights) {
  const int r = n.rank(x);
  if (axis == r - 1) return n.matmul(x, n.constant(weights), false, true);
  if (axis == r - 2) return n.matmul(n.constant(weights), x);
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < r; ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  std::vector<int64_t> back(static_cast<size_t>(r));
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return n.transpose(n.matmul(n.transpose(x, perm), n.constant(weights), false, true), back);
}

/// MIL's own operations for images: whole factors, or align_corners. Null: they do not fit.
Value* as_image(const Node& n, Value* x, const Sampling& s, const std::vector<Axis>& axes) {
  if (n.rank(x) != 4 || !ir::is_float(x->type.dtype()) || s.antialias || s.exclude_outside) return nullptr;
  const Axis &h = axes[2], &w = axes[3];
  if (axes[0].in != axes[0].out || axes[1].in != axes[1].out) return nullptr;
  const auto whole = [](const Axis& a) { return a.out % a.in == 0 && a.scale == static_cast<double>(a.out / a.in); };
  if (!whole(h) || !whole(w)) return nullptr;
  const auto fh = static_cast<int>(h.out / h.in), fw = static_cast<int>(w.out / w.in);
  if (s.mode == "nearest" &&
      ((s.coordinates == "asymmetric" && s.nearest == "floor") ||
       (s.coordinates == "half_pixel" && s.nearest.starts_with("round") && fh % 2 == 0 && fw % 2 == 0)))
    return n.op("upsample_nearest_neighbor", {{"x", x}, {"scale_factor_height", fh}, {"scale_factor_width", fw}});
  if (s.mode == "linear" && (s.coordinates == "align_corners" || s.coordinates == "half_pixel" ||
                             (s.coordinates == "pytorch_half_pixel" && h.out > 1 && w.out > 1)))
    return n.op("upsample_bilinear", {{"x", x},
                                      {"scale_factor_height", fh},
                                      {"scale_factor_width", fw},
                                      {"align_corners", s.coordinates == "align_corners"},
                                      {"half_pixel_centers", s.coordinates != "align_corners"}});
  return nullptr;
}

std::vector<double> doubles_of(const Tensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.count(); ++i) out.push_back(ir::load_f64(t.view(), i));
  return out;
}

/// In float32, as ONNX infers it: 7 for 10 elements and the scale 0.7, which is below 0.7 in float32.
int64_t scaled(const Axis& a, bool crops) {
  const float part = crops ? static_cast<float>(a.end) - static_cast<float>(a.begin) : 1;
  return static_cast<int64_t>(std::floor(static_cast<float>(a.in) * part * static_cast<float>(a.scale)));
}

/// Sizes of the result, from scales or from sizes.
std::vector<Axis> axes_of(const Node& n, const Value* x, const Sampling& s, size_t scales_at, size_t sizes_at,
                          size_t roi_at) {
  const Shape& shape = n.known_shape(x, "Resize");
  std::vector<Axis> out(static_cast<size_t>(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) out[static_cast<size_t>(i)].in = out[static_cast<size_t>(i)].out = shape[i];
  std::vector<int64_t> axes = n.integers_or("axes");
  if (axes.empty())
    for (int64_t i = 0; i < shape.rank(); ++i) axes.push_back(i);
  axes = n.axes(axes, x);
  const auto present = [&](size_t i) { return n.has(i) && n.constant(i) != nullptr && n.constant(i)->count() > 0; };
  const auto computed = [&](size_t i) { return n.has(i) && n.constant(i) == nullptr; };
  if (computed(scales_at)) n.computed_parameter(scales_at, "scales");
  if (computed(sizes_at) && !present(scales_at)) n.computed_parameter(sizes_at, "sizes");
  if (roi_at != 0 && s.coordinates == "tf_crop_and_resize" && n.has(roi_at)) {
    const Tensor* roi = n.constant(roi_at);
    if (roi == nullptr) n.computed_parameter(roi_at, "roi");
    const std::vector<double> r = doubles_of(*roi);
    for (size_t i = 0; i < axes.size() && r.size() == 2 * axes.size(); ++i) {
      out[static_cast<size_t>(axes[i])].begin = r[i];
      out[static_cast<size_t>(axes[i])].end = r[axes.size() + i];
    }
  }
  if (present(scales_at)) {
    const std::vector<double> scales = doubles_of(*n.constant(scales_at));
    if (scales.size() != axes.size()) n.malformed(cat(scales.size(), " scales for ", axes.size(), " axes"));
    for (size_t i = 0; i < axes.size(); ++i) {
      Axis& a = out[static_cast<size_t>(axes[i])];
      a.scale = scales[i];
      a.out = scaled(a, s.coordinates == "tf_crop_and_resize");
    }
    return out;
  }
  if (!present(sizes_at)) n.malformed("neither scales nor sizes are given");
  const std::vector<int64_t> sizes = n.integers(sizes_at, "sizes");
  if (sizes.size() != axes.size()) n.malformed(cat(sizes.size(), " sizes for ", axes.size(), " axes"));
  const std::string policy = n.text_or("keep_aspect_ratio_policy", "stretch");
  double common = policy == "not_larger" ? HUGE_VAL : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis& a = out[static_cast<size_t>(axes[i])];
    a.out = sizes[i];
    a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
    common = policy == "not_larger" ? std::min(common, a.scale) : std::max(common, a.scale);
  }
  if (policy != "stretch")
    for (const int64_t i : axes) {
      Axis& a = out[static_cast<size_t>(i)];
      a.scale = common;
      a.out = static_cast<int64_t>(std::floor(common * static_cast<double>(a.in) + 0.5));
    }
  return out;
}

void resampled(Node& n, const Sampling& s, const std::vector<Axis>& axes) {
  Value* given = n.in(0);
  const DType own = given->type.dtype();
  constexpr int64_t most = 32768;  // whose weights fit into memory
  for (const Axis& a : axes)
    if (a.out < 1 || a.in < 1 || a.out > most || a.in > most) n.unsupported(cat("a size of ", a.out, " from ", a.in));
  if (Value* v = as_image(n, given, s, axes)) return n.set(0, v);
  Value* x = given;
  if (s.mode == "nearest" && s.coordinates != "tf_crop_and_resize") {
    for (size_t i = 0; i < axes.size(); ++i) {
      const Axis& a = axes[i];
      std::vector<int64_t> at;
      bool same = a.in == a.out;
      for (int64_t k = 0; k < a.out; ++k) {
        at.push_back(std::clamp<int64_t>(nearest(s, position(s, a, k)), 0, a.in - 1));
        same &= at.back() == k;
      }
      if (!same) x = n.op("gather", {{"x", x}, {"indices", Tensor::i32(at)}, {"axis", static_cast<int>(i)}});
    }
    return n.set(0, x == given ? n.unary("identity", x) : x);
  }
  x = n.cast(x, ir::is_float(own) ? own : DType::fp32);
  const bool extrapolates = s.coordinates == "tf_crop_and_resize";
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& a = axes[i];
    if (a.in == a.out && a.scale == 1 && !(extrapolates && (a.begin != 0 || a.end != 1))) continue;
    const auto at = static_cast<int64_t>(i);
    x = along(n, x, at, weights_of(s, a, x->type.dtype()));
    if (!extrapolates) continue;
    std::vector<int64_t> dims(axes.size(), 1);
    dims[i] = a.out;
    Value* mask = n.reshape(n.constant(inside_of(s, a, x->type.dtype())), dims);
    x = n.add(n.mul(x, mask), n.mul(n.sub(1.0, mask), s.outside));
  }
  if (!ir::is_float(own)) x = n.cast(n.unary("round", x), own);
  n.set(0, x == given ? n.unary("identity", x) : x);
}

void resize(Node& n) {
  Sampling s;
  s.mode = n.text_or("mode", "nearest");
  s.nearest = n.text_or("nearest_mode", "round_prefer_floor");
  s.coordinates = n.text_or("coordinate_transformation_mode", "half_pixel");
  if (n.opset < 11) s.coordinates = "asymmetric", s.nearest = "floor";
  s.cubic = n.number_or("cubic_coeff_a", -0.75f);
  s.outside = n.number_or("extrapolation_value", 0);
  s.antialias = n.integer_or("antialias", 0) != 0;
  s.exclude_outside = n.integer_or("exclude_outside", 0) != 0;
  const Value* x = n.in(0);
  resampled(n, s, n.opset < 11 ? axes_of(n, x, s, 1, 1, 0) : axes_of(n, x, s, 2, 3, 1));
}

void upsample(Node& n) {
  Sampling s;
  s.mode = n.text_or("mode", "nearest");
  if (s.mode == "bilinear") s.mode = "linear";
  s.coordinates = "asymmetric", s.nearest = "floor";
  const Value* x = n.in(0);
  if (n.opset >= 9) return resampled(n, s, axes_of(n, x, s, 1, 1, 0));
  const Shape& shape = n.known_shape(x, "Upsample");
  const std::vector<float> scales = n.numbers_or("scales");
  if (scales.size() != static_cast<size_t>(shape.rank())) n.malformed("scales do not fit the input");
  std::vector<Axis> axes(scales.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = {shape[static_cast<int>(i)], 0, scales[i]};
    axes[i].out = scaled(axes[i], false);
  }
  resampled(n, s, axes);
}

constexpr OperatorImport kResizeOperators[] = {{"Resize", resize}, {"Upsample", upsample}};

}  // namespace

std::span<const OperatorImport> operators_resize() { return kResizeOperators; }

}  // namespace moka::import::onnx
