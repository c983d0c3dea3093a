// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/common/common.h"
#include "ops/common/packed.h"

namespace moka::ops {

/// Checks a scale and a zero point against the tensor `x`. Each is a scalar or a vector along one axis. `axis` may be
/// absent when both are scalars. Errors name the parameters "scale", "zero_point" and "axis".
Status check_affine(const OpCall& call, const Type& x);

/// Their values at run time, with one entry per group of elements.
struct Affine {
  std::vector<float> scales, zeros;
  Shape groups;  ///< shape of the groups: all 1 except at the axis, where it is the length of the vectors
};
Result<Affine> affine_of(const OpCall& call, const Shape& x);

}  // namespace moka::ops
