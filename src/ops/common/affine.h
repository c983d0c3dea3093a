#pragma once

#include <vector>

#include "ops/common/common.h"
#include "ops/common/packed.h"

namespace moka::ops {

/// A scale and a zero point, each a scalar or a vector along one axis, checked against the tensor `x`. `axis` may be
/// absent when both are scalars. Errors name the parameters "scale", "zero_point" and "axis".
Status check_affine(const OpCall& call, const Type& x);

/// The same at run time: both as vectors of one entry per group.
struct Affine {
  std::vector<float> scales, zeros;
  Shape groups;  ///< of x: all 1, or the vectors' length at the axis
};
Result<Affine> affine_of(const OpCall& call, const Shape& x);

}  // namespace moka::ops
