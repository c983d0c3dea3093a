#pragma once

#include <optional>
#include <vector>

#include "ir/program.h"

namespace moka::passes {

/// The elements of a value as places in the row-major storage of another one, `root`, times `factor`: element i, j, ...
/// is at first + i * steps[0] + j * steps[1] + ...
struct Strided {
  ir::Value* root = nullptr;
  int64_t first = 0;
  double factor = 1;
  std::vector<int64_t> sizes, steps;
};

/// Looks through transposes, reshapes, splits, slices and products with a number, as far as it can, and with `halves`
/// from float32 to the float16 that it was. Nothing when the shape of `v` is not known.
std::optional<Strided> strided_view(ir::Value* v, bool halves = false);

/// The same elements in another shape of as many elements; nothing when they are not evenly spaced in it.
std::optional<Strided> reshaped(const Strided& from, const std::vector<int64_t>& sizes);

}  // namespace moka::passes
