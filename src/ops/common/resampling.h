#pragma once

#include "ir/op_def.h"

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

/// The pixel position of a coordinate. Unless padding is constant, the position is reflected or clamped into the image.
double resample_position(const ResampleSettings& s, double v, int64_t n);
/// How it changes with the coordinate; 0 where it is clamped.
double resample_slope(const ResampleSettings& s, double v, int64_t n);
/// Adds the parameters that resample_settings_of reads.
ir::OpBuilder& resample_params(ir::OpBuilder& builder);

}  // namespace moka::ops
