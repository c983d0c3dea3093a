#pragma once

#include "ir/op_def.h"

/// The parameters of slice_by_index and slice_update: begin, end, stride, begin_mask, end_mask, squeeze_mask.
namespace moka::ops {

using namespace ir;

struct Slice {
  struct Axis {
    int64_t start = 0, step = 1;
    int64_t size = 0;  ///< kAnyDim or a symbol when not known; start is then meaningless
    bool squeezed = false;
  };
  Axis axes[kMaxRank];
  int rank = 0;

  Shape shape() const;  ///< of the result, squeezed axes left out
};

/// NumPy's rules: bounds beyond the ends are clamped, negative ones count from the end, a stride may be negative; a
/// squeezed axis takes the one element at `begin`. Errors: lengths other than the rank of x, stride 0, a squeezed index
/// outside.
Result<Slice> resolve_slice(const OpCall& call, const Shape& x);

}  // namespace moka::ops
