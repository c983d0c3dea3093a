// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "ir/shape.h"

namespace moka::devices::cpu {

/// Adjacent axes as one: a tensor [outer, n, inner].
struct SingleAxis {
  int64_t outer = 1, n = 1, inner = 1;
};
/// nullopt if an axis of more than one element lies between `axes`. `axes` are not negative.
inline std::optional<SingleAxis> single_axis(const ir::Shape& x, std::span<const int64_t> axes) {
  bool chosen[ir::kMaxRank] = {};
  for (int64_t a : axes) chosen[a] = true;
  SingleAxis s;
  for (int i = 0, part = 0; i < x.rank(); i++) {
    if (x[i] == 1) continue;
    if (chosen[i]) {
      if (part == 2) return std::nullopt;
      part = 1;
      s.n *= x[i];
    } else {
      if (part == 1) part = 2;
      (part == 0 ? s.outer : s.inner) *= x[i];
    }
  }
  return s;
}

}  // namespace moka::devices::cpu
