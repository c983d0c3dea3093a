// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/op_def.h"
#include "ops/common/image_point.h"

/// Sampling images at given positions.
namespace moka::ops {

enum class ResamplePadding : uint8_t { constant, border, reflection, symmetric };
enum class ResampleRange : uint8_t { pixels, minus_one_to_one, zero_to_one };

/// The settings of `resample`.
struct ResampleSettings {
  bool bilinear = true;
  ResamplePadding padding = ResamplePadding::constant;
  ResampleRange range = ResampleRange::pixels;
  bool align = false;
  double pad = 0;
};
Result<ResampleSettings> resample_settings_of(const ir::OpCall& call);

/// The pixel position of a coordinate in a row or column of `size` pixels, wherever that is.
inline double pixel_of(const ResampleSettings& s, double v, double size) {
  if (s.range == ResampleRange::minus_one_to_one) return s.align ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
  if (s.range == ResampleRange::zero_to_one) return s.align ? v * (size - 1) : v * size - 0.5;
  return v;
}
/// The same, but unless padding is constant, the position is reflected or clamped into the image.
inline double resample_position(const ResampleSettings& s, double v, int64_t n) {
  const auto size = static_cast<double>(n);
  const double p = pixel_of(s, v, size);
  switch (s.padding) {
    case ResamplePadding::constant: return p;
    case ResamplePadding::border: return p > 0 ? std::min(p, size - 1) : 0.0;
    case ResamplePadding::reflection: return reflected(p, 0, size - 1, n);
    case ResamplePadding::symmetric: return reflected(p, -0.5, size - 0.5, n);
  }
  return p;
}
/// How it changes with the coordinate; 0 where it is clamped.
double resample_slope(const ResampleSettings& s, double v, int64_t n);
/// Adds the parameters that resample_settings_of reads.
ir::OpBuilder& resample_params(ir::OpBuilder& builder);

}  // namespace moka::ops
