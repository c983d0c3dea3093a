#pragma once

#include <cstdint>

#include "ir/tensor.h"

/// Moving elements of any type, strings and packed types included.
namespace moka::ops {

using namespace ir;

/// A copy between two regular grids of elements: for every combination of steps i0, i1, ... the element
/// `from + sum(i_k * from_k)` of the source becomes the element `to + sum(i_k * to_k)` of the destination. Steps may be
/// zero or negative in the source. Contiguous runs are copied as blocks. Never allocates.
class StridedCopy {
 public:
  static constexpr int kMaxDims = 2 * kMaxRank + 2;

  /// Adds an axis inside those added before. Precondition: fewer than kMaxDims axes so far.
  void add(int64_t size, int64_t to_step, int64_t from_step) { axes_[n_++] = {size, to_step, from_step}; }
  /// Adds the axes of a dense tensor of shape `s`, whose elements have these steps.
  void add(const Shape& s, const int64_t* to_steps, const int64_t* from_steps);
  /// Precondition: equal dtypes, storage that does not overlap, every element inside both tensors.
  void run(const TensorView& dst, int64_t to, const TensorView& src, int64_t from) const;

 private:
  struct Axis {
    int64_t size, to, from;
  };
  Axis axes_[kMaxDims];
  int n_ = 0;
};

/// Sets `n` consecutive elements from `at` on to the first element of `value`, converted.
void fill_elements(const TensorView& dst, int64_t at, int64_t n, const TensorView& value);
/// Sets `n` consecutive elements from `at` on to zero, false or "".
void zero_elements(const TensorView& dst, int64_t at, int64_t n);
/// All elements of `src` to `dst`, which has as many and the same dtype.
void copy_all(const TensorView& dst, const TensorView& src);

}  // namespace moka::ops
