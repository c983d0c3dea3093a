// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/common/common.h"

/// Indices, updates and type rules of the gather and scatter operations.
namespace moka::ops {

/// Element types of indices: until iOS16, and since iOS17.
inline constexpr DTypes kIndices16 = any_of(DType::int32, DType::int16, DType::uint16);
inline constexpr DTypes kIndices17 = kIndices16 | any_of(DType::int8, DType::uint8);

/// Turns indices into positions along an axis. Negative indices count from the end, as in NumPy. With `strict`
/// (validate_indices) any index that is negative or beyond the axis is an error.
class Indexer {
 public:
  /// Reads `validate_indices`, if the version has it.
  static Result<Indexer> of(const OpCall& call);
  /// The position of index `v`; -1: outside of [0, size).
  int64_t locate(int64_t v, int64_t size) const {
    if (v < 0 && wraps) v += size;
    return v < 0 || v >= size ? -1 : v;
  }
  /// The position that a gather reads: as locate(), but clamped to the nearest end. Precondition: size > 0.
  static int64_t nearest(int64_t v, int64_t size) {
    if (v < 0) v += size;
    return v < 0 ? 0 : v >= size ? size - 1 : v;
  }
  /// If strict, checks all indices. Component k of an index vector of `depth` components indexes axis `axis` + k of
  /// `s`.
  Status check(const OpCall& call, const TensorView& indices, const Shape& s, int axis, int64_t depth = 1) const;
  bool strict = false;
  bool wraps = true;  ///< whether a scatter counts negative indices from the end: before iOS17
};

/// How a scatter combines an element with its update.
enum class Combine { update, add, sub, mul, div, max, min };
Result<Combine> combine_of(const OpCall& call);
inline constexpr Note kGatherNote{
    "Negative indices count from the end, also since iOS17, whose definition calls them out of bounds. Indices beyond "
    "the "
    "axis read the nearest slice.",
    "coremltools' definition: -size <= index < size, what is outside undefined but memory safe; its value inference is "
    "NumPy's"};
inline constexpr Note kScatterNote{
    "Until iOS16 negative indices count from the end; since iOS17 they are outside. Updates with indices outside are "
    "ignored.",
    "coremltools' definition; its iOS17 test_scatter_gather.py"};
inline constexpr Note kScatterModeNote{
    "Updates are applied in the order of the indices, so with mode update the last of equal indices wins. Integers "
    "wrap; "
    "an integer divided by 0 is 0. max and min give NaN if either operand is NaN.",
    "NumPy's ufunc.at; the definition leaves the order open"};
inline constexpr Note kValidateNote{
    "With validate_indices, negative indices and those beyond the axis are an error, for constant indices while "
    "loading.",
    "coremltools' definition"};

/// dst[to + i] = dst[to + i] <rule> src[from + i] for i < n. Each result is rounded to the element type.
void combine_elements(Combine rule, const TensorView& dst, int64_t to, const TensorView& src, int64_t from, int64_t n);

/// Begins an operation that gathers from `x` at `indices`. `has_axis` adds the parameter axis, `has_batches` adds
/// batch_dims (iOS16). The caller adds more notes and calls build().
OpBuilder gather_builder(std::string name, std::string doc, bool has_axis, bool has_batches, InferFn infer,
                         ReferenceFn reference);
/// An operation that scatters `updates` into `data` at `indices`. `has_axis` adds the parameter axis.
OpDef scatter_op(std::string name, std::string doc, bool has_axis, InferFn infer, ReferenceFn reference,
                 GradientFn gradient);
/// The operands and settings of a scatter at run time.
struct ScatterCall {
  const TensorView &data, &indices, &updates;
  Combine rule;
  Indexer indexer;
};
/// Checks the indices, whose component k indexes axis `axis` + k of data, and copies data to `out`.
Result<ScatterCall> begin_scatter(const OpCall& call, const TensorView& out, int axis, int64_t depth = 1);
/// batch_dims, or 0 before it was introduced.
Result<int> batch_dims_of(const OpCall& call);
/// Sets the first `batch` dimensions of `out`, which x and indices must agree on.
Status unify_batches(const OpCall& call, int batch, Shape& out);
/// Checks that axes [first, end) of x are not empty if the result, of shape `out`, has elements.
Status expect_gatherable(const OpCall& call, const Shape& out, int first, int end);

}  // namespace moka::ops
