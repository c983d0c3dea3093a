// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/op_def.h"
#include "ops/common/strided.h"

/// The parameters of slice_by_index and slice_update (begin, end, stride, begin_mask, end_mask, squeeze_mask), and the
/// slices of x that other operations read.
namespace moka::ops {

using namespace ir;

struct Slice {
  struct Axis {
    int64_t start = 0, step = 1;
    int64_t size = 0;  ///< kAnyDim or a symbol: unknown, and start has no meaning
    bool squeezed = false;
  };
  Axis axes[kMaxRank];
  int rank = 0;

  Shape shape() const;  ///< the result's shape, without squeezed axes
};

/// Resolves the parameters by NumPy's rules. Negative bounds count from the end, then bounds are clamped to the axis. A
/// stride may be negative. A squeezed axis takes the one element at `begin`. Errors: lengths other than the rank of x,
/// a stride of 0, a squeezed index outside of the axis.
Result<Slice> resolve_slice(const OpCall& call, const Shape& x);

/// The slice of x that slice_by_index, slice_by_size, reverse or crop reads. x and the slice have elements. nullopt:
/// the slice is known only at run time, or it is not inside x.
std::optional<Slice> known_slice(const OpCall& call);
/// The element of x where the slice begins.
int64_t first_of(const Slice& slice, const Shape& x);
/// Copies the slice, which begins there, to a dense result.
StridedCopy copy_of(const Slice& slice, const Shape& x);
/// Whether the slice is one contiguous run of x.
bool is_run(const Slice& slice, const Shape& x);

inline constexpr Note kBoundsNote{
    "Negative bounds count from the end. Then bounds are clamped, also with negative strides; what is beyond is "
    "empty.",
    "Python's slices, NumPy"};
/// Adds the optional parameters begin_mask, end_mask and squeeze_mask.
OpBuilder& slice_masks(OpBuilder& builder);
inline constexpr Note kMasksNote{
    "begin_mask and end_mask ignore the bound. squeeze_mask takes the element at begin, drops the axis and "
    "ignores end and stride. An element outside is an error.",
    "coremltools' definition"};

}  // namespace moka::ops
