// SPDX-License-Identifier: Apache-2.0
#include "ops/common/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

Result<Sampling> sampling_of(const OpCall& call, std::string_view param) {
  const std::string_view text = MOKA_TRY(call.text(param));
  if (text == "DEFAULT") return Sampling::default_;
  if (text == "STRICT_ALIGN_CORNERS") return Sampling::strict_align_corners;
  if (text == "ALIGN_CORNERS") return Sampling::align_corners;
  if (text == "OFFSET_CORNERS") return Sampling::offset_corners;
  if (text == "UNALIGN_CORNERS") return Sampling::unalign_corners;
  return call.error(param, "DEFAULT, STRICT_ALIGN_CORNERS, ALIGN_CORNERS, OFFSET_CORNERS or UNALIGN_CORNERS",
                    cat("'", text, "'"));
}

Result<Sampling> upsampling_of(const OpCall& call) {
  const bool align = MOKA_TRY(call.flag("align_corners"));
  bool centers = !align;
  if (call.version().param_index("half_pixel_centers") >= 0 && call.has("half_pixel_centers")) {
    centers = MOKA_TRY(call.flag("half_pixel_centers"));
  }
  if (align && centers) return call.error("half_pixel_centers", "false when align_corners is true", "true");
  return align ? Sampling::strict_align_corners : centers ? Sampling::unalign_corners : Sampling::default_;
}

int64_t mirrored(int64_t i, int64_t n) {
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  i = std::abs(i) % period;
  return std::min(i, period - i);
}

double grid_point(Sampling mode, double extent, int64_t out, int64_t i) {
  const auto n = static_cast<double>(out), at = static_cast<double>(i);
  switch (mode) {
    case Sampling::default_: return at * extent / n;
    case Sampling::strict_align_corners: return out > 1 ? at * (extent - 1) / (n - 1) : 0.0;
    case Sampling::align_corners: return out > 1 ? at * (extent - 1) / (n - 1) : (extent - 1) / 2;
    case Sampling::offset_corners: return (at + 0.5) * std::max(1.0, extent - 1) / n;
    case Sampling::unalign_corners: return (at + 0.5) * extent / n - 0.5;
  }
  return 0;
}

Tap tap_at(double position, int64_t n) {
  const double last = static_cast<double>(n - 1);
  const double at = position > 0 ? std::min(position, last) : 0.0;
  Tap t;
  t.low = static_cast<int64_t>(at);
  t.high = std::min(t.low + 1, n - 1);
  t.part = at - static_cast<double>(t.low);
  return t;
}

int64_t nearest_at(double position, int64_t n) {
  const double at = std::floor(position + 0.5), last = static_cast<double>(n - 1);
  return at > 0 ? static_cast<int64_t>(std::min(at, last)) : 0;
}

int64_t nearest_half_pixel(int64_t in, int64_t out, int64_t i) {
  return static_cast<int64_t>(static_cast<__int128>(2 * i + 1) * in / (static_cast<__int128>(out) * 2));
}

int64_t nearest_top_left(int64_t in, int64_t out, int64_t i) {
  return static_cast<int64_t>(static_cast<__int128>(i) * in / out);
}

Result<Type> resized_type(const OpCall& call, int64_t height, int64_t width) {
  Shape s = call.shape("x");
  if (s.rank() < 3) return call.error("x", "rank 3 or more", cat(s));
  const int h = s.rank() - 2, w = s.rank() - 1;
  if ((s[h] == 0 && height != 0) || (s[w] == 0 && width != 0)) {
    return call.error("x", "at least one row and one column", cat(s));
  }
  s[h] = height;
  s[w] = width;
  return Type::tensor(call.dtype("x"), s);
}

void resize_linear_2d(const TensorView& x, const TensorView& y, Sampling mode) {
  const int r = x.shape.rank();
  const int64_t planes = x.shape.count(0, r - 2);
  const int64_t ih = x.shape[r - 2], iw = x.shape[r - 1], oh = y.shape[r - 2], ow = y.shape[r - 1];
  with_reader(x, [&](auto read) {
    for (int64_t p = 0; p < planes; ++p) {
      for (int64_t i = 0; i < oh; ++i) {
        const Tap v = tap_at(grid_point(mode, static_cast<double>(ih), oh, i), ih);
        const int64_t top = (p * ih + v.low) * iw, bottom = (p * ih + v.high) * iw;
        for (int64_t j = 0; j < ow; ++j) {
          const Tap h = tap_at(grid_point(mode, static_cast<double>(iw), ow, j), iw);
          const double a = mix(read(top + h.low), read(top + h.high), h.part);
          const double b = mix(read(bottom + h.low), read(bottom + h.high), h.part);
          const double value = mix(a, b, v.part);
          store_run(y, (p * oh + i) * ow + j, 1, 1, &value);
        }
      }
    }
    return 0;
  });
}

void resize_nearest_2d(const TensorView& x, const TensorView& y, int64_t (*index)(int64_t, int64_t, int64_t)) {
  const int r = x.shape.rank();
  const int64_t planes = x.shape.count(0, r - 2);
  const int64_t ih = x.shape[r - 2], iw = x.shape[r - 1], oh = y.shape[r - 2], ow = y.shape[r - 1];
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t i = 0; i < oh; ++i) {
      const int64_t row = (p * ih + index(ih, oh, i)) * iw;
      for (int64_t j = 0; j < ow; ++j) copy_element(y, (p * oh + i) * ow + j, x, row + index(iw, ow, j));
    }
  }
}

Result<int64_t> upsampled_size(const OpCall& call, std::string_view param, int64_t size) {
  const TensorView* v = call.value(param);
  const double scale = MOKA_TRY(call.number(param));
  if (!(scale > 0) || scale > 1e9) return call.error(param, "a scale above 0 and at most 1e9", cat(scale));
  if (size < 0) return scale == 1 ? size : kAnyDim;
  // MIL multiplies real scales in float32, where 0.7 times 10 is 7.
  const double made = is_integer(v->dtype) ? static_cast<double>(load_i64(*v, 0)) * static_cast<double>(size)
                                           : std::floor(static_cast<float>(scale) * static_cast<float>(size));
  if (made > 1e15) return call.error(param, "a result of at most 1e15 elements", cat(made));
  return static_cast<int64_t>(made);
}

Result<std::vector<Type>> infer_resized(const OpCall& call) {
  const int64_t height = MOKA_TRY(call.integer("target_size_height")),
                width = MOKA_TRY(call.integer("target_size_width"));
  if (height < 1) return call.error("target_size_height", "1 or more", cat(height));
  if (width < 1) return call.error("target_size_width", "1 or more", cat(width));
  if (any_unranked(call, {"x"})) return one(Type::unranked(call.dtype("x")));
  return one(MOKA_TRY(resized_type(call, height, width)));
}

Result<std::vector<Type>> infer_upsampled(const OpCall& call) {
  if (any_unranked(call, {"x"})) return one(Type::unranked(call.dtype("x")));
  const Shape& x = call.shape("x");
  if (x.rank() < 3) return call.error("x", "rank 3 or more", cat(x));
  const int64_t height = MOKA_TRY(upsampled_size(call, "scale_factor_height", x[x.rank() - 2]));
  const int64_t width = MOKA_TRY(upsampled_size(call, "scale_factor_width", x[x.rank() - 1]));
  return one(MOKA_TRY(resized_type(call, height, width)));
}

OpBuilder& sampling_mode(OpBuilder& builder) {
  return builder.constant("sampling_mode", kString)
      .one_of({"DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"})
      .or_else(Tensor::text("DEFAULT"));
}

OpBuilder upsample_builder(std::string name, std::string doc) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", kF16F32)
      .type_var("U", any_of(DType::fp32, DType::int32))
      .in("x", "T")
      .constant("scale_factor_height", "U")
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("scale_factor_width", "U")
      .or_else(Tensor::scalar_i64(DType::int32, 1));
  return b;
}

}  // namespace moka::ops
