#pragma once

#include "ops/common/common.h"

/// What gather and scatter operations share.
namespace moka::ops {

/// Element types of indices since iOS16 and since iOS17.
inline constexpr DTypes kIndices16 = any_of(DType::int32, DType::int16, DType::uint16);
inline constexpr DTypes kIndices17 = kIndices16 | any_of(DType::int8, DType::uint8);

/// How an index is taken. Negative ones count from the end, as NumPy has it. `strict` (validate_indices): every index
/// from 0 to the size, else an error.
class Indexer {
 public:
  /// Reads `validate_indices` where the version has it.
  static Result<Indexer> of(const OpCall& call);
  /// `v` as an index below `size`; -1 when it is outside.
  int64_t locate(int64_t v, int64_t size) const {
    if (v < 0 && wraps) v += size;
    return v < 0 || v >= size ? -1 : v;
  }
  /// As locate, clamped to the nearest end: what a gather reads. Precondition: size > 0.
  static int64_t nearest(int64_t v, int64_t size) {
    if (v < 0) v += size;
    return v < 0 ? 0 : v >= size ? size - 1 : v;
  }
  /// Checks all of `indices` against `size` when strict; the entries of an index vector of `depth` components have the
  /// sizes of consecutive axes of `s` from `axis` on.
  Status check(const OpCall& call, const TensorView& indices, const Shape& s, int axis, int64_t depth = 1) const;
  bool strict = false;
  bool wraps = true;  ///< whether a scatter counts negative indices from the end: until ios17
};

/// The rule by which scatter combines an element with its update.
enum class Combine { update, add, sub, mul, div, max, min };
Result<Combine> combine_of(const OpCall& call);
inline constexpr Note kGatherNote{
    "Negative indices count from the end, also since iOS17, where they are called out of bounds; indices beyond read "
    "the nearest slice.",
    "coremltools' definition: -size <= index < size, what is outside undefined but memory safe; its value inference is "
    "NumPy's"};
inline constexpr Note kScatterNote{
    "Until iOS16 negative indices count from the end, since iOS17 they are outside. What is outside is left out.",
    "coremltools' definition; its iOS17 test_scatter_gather.py"};
inline constexpr Note kScatterModeNote{
    "Updates are combined in the order of the indices, so update keeps the last of equal ones. Integers wrap and give "
    "0 when divided by 0; max and min give NaN if either is.",
    "NumPy's ufunc.at; the definition leaves the order open"};
inline constexpr Note kValidateNote{
    "validate_indices makes negative indices and those beyond the axis an error, known ones already when loading.",
    "coremltools' definition"};

/// The allowed values of `mode`.
inline std::vector<std::string> combine_modes() { return {"add", "div", "max", "min", "mul", "sub", "update"}; }
/// dst[to + i] = dst[to + i] (rule) src[from + i] for i < n; each result is rounded to the element type.
void combine_elements(Combine rule, const TensorView& dst, int64_t to, const TensorView& src, int64_t from, int64_t n);

}  // namespace moka::ops
