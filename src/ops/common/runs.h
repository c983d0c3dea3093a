// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/half.h"
#include "ir/tensor.h"

/// Access to runs of elements, with one dispatch on the element type per run.
namespace moka::ops {

/// to[j] = t[start + j * step] for j < n. Precondition: every index is inside the tensor.
void load_run(const ir::TensorView& t, int64_t start, int64_t step, int64_t n, double* to);
void load_run(const ir::TensorView& t, int64_t start, int64_t step, int64_t n, int64_t* to);

/// t[start + j * step] = from[j] for j < n. Floats are rounded once; int64_t wraps to the integer type.
void store_run(const ir::TensorView& t, int64_t start, int64_t step, int64_t n, const double* from);
void store_run(const ir::TensorView& t, int64_t start, int64_t step, int64_t n, const int64_t* from);

/// The sum of t[start + j] * x[j] for j < n, in double.
double dot_run(const ir::TensorView& t, int64_t start, int64_t n, const double* x);

/// Calls fn with a function double(int64_t index) that reads elements of this type.
template <class Fn>
auto with_reader(const ir::TensorView& t, Fn&& fn) {
  switch (t.dtype) {
    case ir::DType::fp32: {
      const float* p = t.as<const float>();
      return fn([p](int64_t i) { return static_cast<double>(p[i]); });
    }
    case ir::DType::fp16: {
      const half* p = t.as<const half>();
      return fn([p](int64_t i) { return static_cast<double>(static_cast<float>(p[i])); });
    }
    default: return fn([&t](int64_t i) { return ir::load_f64(t, i); });
  }
}

}  // namespace moka::ops
