// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ir/tensor.h"

namespace moka::ops {

using namespace ir;

/// The index of the largest of `n` elements, the first of equals. NaN never wins; if all are NaN, the index is 0.
template <typename T>
int64_t index_of_largest(const T* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (x[i] > x[best] || (std::isnan(x[best]) && !std::isnan(x[i]))) best = i;
  return best;
}

/// Sorts each row along `axis` and calls fn(place, source, index) for its first `k` elements. `place` is an offset in a
/// result with k entries along the axis, `source` an offset in x and `index` the position along the axis. Equal
/// elements keep their order. NaN comes last in both directions. Precondition: k is at most the size of the axis.
template <class Fn>
void for_each_sorted(const TensorView& x, int axis, int64_t k, bool ascending, Fn fn) {
  const int64_t outer = x.shape.count(0, axis), n = x.shape[axis], inner = x.shape.count(axis + 1, x.shape.rank());
  if (outer == 0 || inner == 0 || k == 0) return;
  auto rows = [&](auto zero, auto load) {
    using Key = decltype(zero);
    struct Entry {
      Key key;
      int64_t index;
    };
    std::vector<Entry> row(static_cast<size_t>(n));
    auto before = [ascending](const Entry& a, const Entry& b) {
      if constexpr (std::is_floating_point_v<Key>) {
        const bool na = std::isnan(a.key), nb = std::isnan(b.key);
        if (na || nb) return na && nb ? a.index < b.index : nb;
      }
      if (a.key == b.key) return a.index < b.index;
      return ascending ? a.key < b.key : a.key > b.key;
    };
    for (int64_t o = 0; o < outer; o++) {
      for (int64_t i = 0; i < inner; i++) {
        for (int64_t j = 0; j < n; j++) row[static_cast<size_t>(j)] = {load((o * n + j) * inner + i), j};
        if (k < n)
          std::partial_sort(row.begin(), row.begin() + k, row.end(), before);
        else
          std::sort(row.begin(), row.end(), before);
        for (int64_t j = 0; j < k; j++) {
          const int64_t index = row[static_cast<size_t>(j)].index;
          fn((o * k + j) * inner + i, (o * n + index) * inner + i, index);
        }
      }
    }
  };
  if (x.dtype == DType::fp32)
    rows(float{}, [p = x.as<float>()](int64_t i) { return p[i]; });
  else if (is_float(x.dtype))
    rows(double{}, [&](int64_t i) { return load_f64(x, i); });
  else
    rows(int64_t{}, [&](int64_t i) { return load_i64(x, i); });
}

}  // namespace moka::ops
