// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/tensor.h"

namespace moka::ir {

/// Borrowed numbers of byte-sized elements, which are only read, in any strides.
struct ArrayView {
  DType dtype = DType::none;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;  ///< in elements; empty: row-major without gaps
  const void* data = nullptr;

  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  int64_t count() const;
  /// The offset in elements of element `i` in row-major order.
  int64_t offset(int64_t i) const;
  /// Element `offset`, which `offset()` gives.
  double load_f64(int64_t offset) const;
};

/// Copies an array into a dense tensor with as many elements of any numeric type, converted as by store_f64 and
/// store_i64.
void copy_array(const ArrayView& from, const TensorView& to);

}  // namespace moka::ir
