#pragma once

#include "ir/op_def.h"

/// Where resized images read their input.
namespace moka::ops {

/// How output positions map to input positions, by MIL's names.
enum class Sampling : uint8_t { default_, strict_align_corners, align_corners, offset_corners, unalign_corners };

inline constexpr ir::Note kGridNote{
    "Output i of n over m inputs reads: DEFAULT i * m / n; STRICT_ALIGN_CORNERS i * (m - 1) / (n - 1), ALIGN_CORNERS "
    "the same but the middle for n = 1; OFFSET_CORNERS (i + 0.5) * max(1, m - 1) / n; UNALIGN_CORNERS (i + 0.5) * m / "
    "n - 0.5; clamped to the image.",
    "coremltools' definition of resize_bilinear and its tables of grid points"};
Result<Sampling> sampling_of(const ir::OpCall& call, std::string_view param = "sampling_mode");

/// That of upsample_bilinear's align_corners and half_pixel_centers.
Result<Sampling> upsampling_of(const ir::OpCall& call);

/// The input position of output i of `out`, over `extent` input elements (a real number for boxes), not clamped.
double grid_point(Sampling mode, double extent, int64_t out, int64_t i);

/// Two neighbours and the weight of the second.
struct Tap {
  int64_t low = 0, high = 0;
  double part = 0;
};
/// Linear interpolation at `position` clamped to [0, n - 1]; NaN reads the first element. Precondition: n >= 1.
Tap tap_at(double position, int64_t n);

/// Index of the nearest element, clamped to [0, n - 1]; halves go up. Precondition: n >= 1.
int64_t nearest_at(double position, int64_t n);

/// Nearest neighbour at half pixel centres: floor((i + 0.5) * in / out), exactly.
int64_t nearest_half_pixel(int64_t in, int64_t out, int64_t i);
/// Nearest neighbour from the top left: floor(i * in / out), exactly.
int64_t nearest_top_left(int64_t in, int64_t out, int64_t i);

/// Position i of an axis that goes on for ever by being mirrored at its first and last of n elements.
int64_t mirrored(int64_t i, int64_t n);

/// Checks that x has rank 3 or more and known-or-unknown sizes that can be resized to height and width (kAnyDim: not
/// known); the resulting type. An empty image can only stay empty.
Result<ir::Type> resized_type(const ir::OpCall& call, int64_t height, int64_t width);

/// y[..., h, w] from the last two dimensions of x, bilinear, both by `mode`.
void resize_linear_2d(const ir::TensorView& x, const ir::TensorView& y, Sampling mode);
/// The same with the nearest element, by `index(in, out, i)`.
void resize_nearest_2d(const ir::TensorView& x, const ir::TensorView& y, int64_t (*index)(int64_t, int64_t, int64_t));

/// Output size of an upsampling parameter (integer or real scale): floor(scale * size), kAnyDim where size is unknown.
Result<int64_t> upsampled_size(const ir::OpCall& call, std::string_view param, int64_t size);

}  // namespace moka::ops
