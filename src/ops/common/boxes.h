// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "ir/op_def.h"
#include "ops/common/sampling.h"

/// Boxes that crop_resize samples.
namespace moka::ops {

struct BoxMode {
  bool height_first = true;
  bool center_size = false;
};

/// What the four numbers of a box mean.
struct BoxSettings {
  BoxMode mode;
  Sampling sampling = Sampling::default_;
  bool normalized = false;
  double scale = 1;
};
/// Reads box_coordinate_mode, sampling_mode, normalized_coordinates and spatial_scale.
Result<BoxSettings> box_settings_of(const ir::OpCall& call);
/// Adds these parameters, and the target sizes, to an operation.
ir::OpBuilder& box_params(ir::OpBuilder& builder);
/// Checks the target sizes.
Status check_box_sizes(const ir::OpCall& call);

/// The positions of samples along one side of a box.
struct BoxSide {
  double start, end;
  int64_t size;  // the image's size
  int64_t samples;
  Sampling mode;

  double at(int64_t i) const {
    const double g = grid_point(mode, std::abs(end - start) + 1, samples, i);
    return end >= start ? start + g : start - g;
  }
  /// Whether a position is inside the image, with some tolerance for rounding. NaN is outside.
  bool contains(double position) const {
    constexpr double kSlack = 1e-5;
    return position >= -kSlack && position <= static_cast<double>(size - 1) + kSlack;
  }
};

struct BoxSides {
  BoxSide rows, columns;
};
/// The sides of the box whose numbers begin at element `first` of `boxes`, for images of `x` and samples of `y`.
BoxSides box_sides(const BoxSettings& s, const ir::TensorView& boxes, int64_t first, const ir::Shape& x,
                   const ir::Shape& y);

}  // namespace moka::ops
