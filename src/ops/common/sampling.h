// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/op_def.h"

/// The input elements that a resized image reads.
namespace moka::ops {

/// How output positions map to input positions. The names are MIL's.
enum class Sampling : uint8_t { default_, strict_align_corners, align_corners, offset_corners, unalign_corners };

inline constexpr ir::Note kGridNote{
    "Output i of n reads m inputs at position: DEFAULT i * m / n; STRICT_ALIGN_CORNERS i * (m - 1) / (n - 1); "
    "ALIGN_CORNERS the same, but the middle if n = 1; OFFSET_CORNERS (i + 0.5) * max(1, m - 1) / n; "
    "UNALIGN_CORNERS (i + 0.5) * m / n - 0.5. Positions are clamped to the image.",
    "coremltools' definition of resize_bilinear and its tables of grid points"};
Result<Sampling> sampling_of(const ir::OpCall& call, std::string_view param = "sampling_mode");

/// The mode that align_corners and half_pixel_centers of upsample_bilinear select.
Result<Sampling> upsampling_of(const ir::OpCall& call);

/// The input position of output i of `out`, not clamped. `extent` is the number of input elements, which is a real
/// number for boxes.
double grid_point(Sampling mode, double extent, int64_t out, int64_t i);

/// Two adjacent elements and the weight of the second.
struct Tap {
  int64_t low = 0, high = 0;
  double part = 0;
};
/// Interpolates between two elements. Leaves out one of weight 0, because it may be infinite.
inline double mix(double low, double high, double part) { return part == 0 ? low : low * (1 - part) + high * part; }
/// The elements to interpolate at `position`, which is clamped to [0, n - 1]. NaN reads the first element. n >= 1.
Tap tap_at(double position, int64_t n);

/// Index of the nearest element, clamped to [0, n - 1]. Halves go up. n >= 1.
int64_t nearest_at(double position, int64_t n);

/// The nearest element with half-pixel centers: exactly floor((i + 0.5) * in / out).
int64_t nearest_half_pixel(int64_t in, int64_t out, int64_t i);
/// The nearest element without centers: exactly floor(i * in / out).
int64_t nearest_top_left(int64_t in, int64_t out, int64_t i);

/// The element at position i of an axis of n elements that is repeatedly reflected at its first and last element.
int64_t mirrored(int64_t i, int64_t n);

/// Checks that x has at least rank 3 and can be resized to height and width (kAnyDim: unknown). Returns the type of the
/// result. An empty image can only stay empty.
Result<ir::Type> resized_type(const ir::OpCall& call, int64_t height, int64_t width);

/// Resizes the last two dimensions of x bilinearly, both with `mode`.
void resize_linear_2d(const ir::TensorView& x, const ir::TensorView& y, Sampling mode);
/// Resizes to the nearest element: output i reads element index(in, out, i).
void resize_nearest_2d(const ir::TensorView& x, const ir::TensorView& y, int64_t (*index)(int64_t, int64_t, int64_t));

/// Output size for a scale parameter, integer or real: floor(scale * size); kAnyDim if size is unknown.
Result<int64_t> upsampled_size(const ir::OpCall& call, std::string_view param, int64_t size);

/// Infers the result of an operation that resizes to target_size_height and target_size_width.
Result<std::vector<ir::Type>> infer_resized(const ir::OpCall& call);
/// Infers the result of an operation that resizes by scale_factor_height and scale_factor_width.
Result<std::vector<ir::Type>> infer_upsampled(const ir::OpCall& call);
/// Adds the parameter sampling_mode.
ir::OpBuilder& sampling_mode(ir::OpBuilder& builder);
/// Begins the definition of an operation that resizes: types, x and the factors.
ir::OpBuilder upsample_builder(std::string name, std::string doc);

}  // namespace moka::ops
