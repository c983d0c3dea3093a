// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ir/program.h"

namespace moka::passes {

/// A value as a strided view of another one, `root`, times `factor`. Element (i, j, ...) is at first + i * steps[0] +
/// j * steps[1] + ... in the row-major storage of root.
struct Strided {
  ir::Value* root = nullptr;
  int64_t first = 0;
  double factor = 1;
  std::vector<int64_t> sizes, steps;
};

/// Looks back through transposes, reshapes, splits, slices and products with a number as far as possible, and with
/// `halves` through casts from float16 to float32. nullopt: the shape of `v` is not known.
std::optional<Strided> strided_view(ir::Value* v, bool halves = false);

/// The same view in another shape with as many elements. nullopt: elements are not evenly spaced in that shape.
std::optional<Strided> reshaped(const Strided& from, const std::vector<int64_t>& sizes);

}  // namespace moka::passes
