// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ir/tensor.h"

/// Copies elements of any type, including strings and sub-byte types.
namespace moka::ops {

using namespace ir;

/// A copy between two regular grids of elements. For all indices i0, i1, ... element from + sum(i_k * from_k) of the
/// source becomes element to + sum(i_k * to_k) of the destination. Steps of the source may be zero or negative.
/// Contiguous runs are copied as blocks. Never allocates.
class StridedCopy {
 public:
  static constexpr int kMaxDims = 2 * kMaxRank + 2;
  struct Axis {
    int64_t size, to, from;
  };

  /// Adds an inner axis. Precondition: fewer than kMaxDims axes so far.
  void add(int64_t size, int64_t to_step, int64_t from_step) { axes_[n_++] = {size, to_step, from_step}; }
  /// Adds the axes of a dense tensor of shape `s`, whose elements have these steps.
  void add(const Shape& s, const int64_t* to_steps, const int64_t* from_steps);
  /// Precondition: dtypes are equal, the tensors do not overlap, and every element is inside both.
  void run(const TensorView& dst, int64_t to, const TensorView& src, int64_t from) const;
  /// The axes in order of addition.
  std::span<const Axis> axes() const { return {axes_, static_cast<size_t>(n_)}; }
  /// The same copy without axes of one element, with adjacent axes merged when they are contiguous on both sides.
  StridedCopy merged() const;

 private:
  Axis axes_[kMaxDims];
  int n_ = 0;
};

/// Sets `n` consecutive elements from `at` on to the first element of `value`, converted to their type.
void fill_elements(const TensorView& dst, int64_t at, int64_t n, const TensorView& value);
/// Sets `n` consecutive elements from `at` on to zero, false or "".
void zero_elements(const TensorView& dst, int64_t at, int64_t n);
/// Copies all elements of `src` to `dst`, which has the same number of elements and the same dtype.
void copy_all(const TensorView& dst, const TensorView& src);

}  // namespace moka::ops
