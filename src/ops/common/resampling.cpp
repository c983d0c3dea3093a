// SPDX-License-Identifier: Apache-2.0
#include "ops/common/resampling.h"

#include <cmath>

namespace moka::ops {

Result<ResampleSettings> resample_settings_of(const ir::OpCall& call) {
  ResampleSettings s;
  const std::string_view sampling = MOKA_TRY(call.text("sampling_mode"));
  if (sampling != "bilinear" && sampling != "nearest")
    return call.error("sampling_mode", "bilinear or nearest", cat("'", sampling, "'"));
  s.bilinear = sampling == "bilinear";
  const std::string_view padding = MOKA_TRY(call.text("padding_mode"));
  if (padding == "constant")
    s.padding = ResamplePadding::constant;
  else if (padding == "border")
    s.padding = ResamplePadding::border;
  else if (padding == "reflection")
    s.padding = ResamplePadding::reflection;
  else if (padding == "symmetric")
    s.padding = ResamplePadding::symmetric;
  else
    return call.error("padding_mode", "constant, border, reflection or symmetric", cat("'", padding, "'"));
  const std::string_view range = MOKA_TRY(call.text("coordinates_mode"));
  if (range == "unnormalized")
    s.range = ResampleRange::pixels;
  else if (range == "normalized_minus_one_to_one")
    s.range = ResampleRange::minus_one_to_one;
  else if (range == "normalized_zero_to_one")
    s.range = ResampleRange::zero_to_one;
  else
    return call.error("coordinates_mode", "unnormalized, normalized_minus_one_to_one or normalized_zero_to_one",
                      cat("'", range, "'"));
  s.align = MOKA_TRY(call.flag("align_corners"));
  s.pad = MOKA_TRY(call.number("padding_value"));
  return s;
}

namespace {

/// The slope of reflected().
double reflected_slope(double v, double low, double high, int64_t n) {
  const double span = high - low;
  if (!(span > 0) || !std::isfinite(v)) return 0;
  const double away = std::abs(v - low), rest = std::fmod(away, span);
  const bool back = std::fmod(std::floor(away / span), 2.0) != 0;
  const double at = back ? high - rest : low + rest;
  if (at < 0 || at > static_cast<double>(n - 1)) return 0;
  return back == (v < low) ? 1 : -1;
}

}  // namespace

double resample_slope(const ResampleSettings& s, double v, int64_t n) {
  const auto size = static_cast<double>(n);
  const double p = pixel_of(s, v, size), extent = s.align ? size - 1 : size;
  const double scale = s.range == ResampleRange::pixels             ? 1
                       : s.range == ResampleRange::minus_one_to_one ? extent / 2
                                                                    : extent;
  switch (s.padding) {
    case ResamplePadding::constant: return scale;
    case ResamplePadding::border: return p > 0 && p < size - 1 ? scale : 0;
    case ResamplePadding::reflection: return scale * reflected_slope(p, 0, size - 1, n);
    case ResamplePadding::symmetric: return scale * reflected_slope(p, -0.5, size - 0.5, n);
  }
  return scale;
}

ir::OpBuilder& resample_params(ir::OpBuilder& builder) {
  return builder.constant("sampling_mode", ir::kString)
      .one_of({"bilinear", "nearest"})
      .constant("padding_mode", ir::kString)
      .one_of({"constant", "border", "reflection", "symmetric"})
      .constant("padding_value", "T")
      .constant("coordinates_mode", ir::kString)
      .one_of({"unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"})
      .constant("align_corners", ir::kBool);
}

}  // namespace moka::ops
