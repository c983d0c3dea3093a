#include "ops/common/resampling.h"

#include <algorithm>

#include "ops/common/image_point.h"

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

double resample_position(const ResampleSettings& s, double v, int64_t n) {
  const auto size = static_cast<double>(n);
  double p = v;
  if (s.range == ResampleRange::minus_one_to_one) p = s.align ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
  if (s.range == ResampleRange::zero_to_one) p = s.align ? v * (size - 1) : v * size - 0.5;
  switch (s.padding) {
    case ResamplePadding::constant: return p;
    case ResamplePadding::border: return p > 0 ? std::min(p, size - 1) : 0.0;
    case ResamplePadding::reflection: return reflected(p, 0, size - 1, n);
    case ResamplePadding::symmetric: return reflected(p, -0.5, size - 0.5, n);
  }
  return p;
}

}  // namespace moka::ops
