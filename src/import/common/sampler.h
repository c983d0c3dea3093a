// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "import/common/expressions.h"

/// Images read at computed positions.
namespace moka::import {

/// How a sampler treats positions, and the image it reads as [batch, channels, all elements].
struct Sampler {
  ir::Value* image;
  std::vector<int64_t> sizes;  ///< of the sampled axes
  std::string padding;         ///< zeros, border, reflection
  bool align;
};

ir::Value* clamped(const Expressions& n, ir::Value* x, double low, double high);
/// Positions mirrored at the borders, or at the outermost elements if `align`.
ir::Value* reflected(const Expressions& n, ir::Value* x, int64_t size, bool align);
/// The elements around positions, in units of elements, times their weights in an interpolation: each [batch, channels,
/// points]. positions: one [batch, points] per axis. mode: nearest, linear, cubic.
std::vector<ir::Value*> weighted_neighbors(const Expressions& n, const Sampler& s,
                                           const std::vector<ir::Value*>& positions, const std::string& mode);
/// Their sum.
ir::Value* sampled(const Expressions& n, const Sampler& s, const std::vector<ir::Value*>& positions,
                   const std::string& mode);

}  // namespace moka::import
