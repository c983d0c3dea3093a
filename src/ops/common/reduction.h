// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "ops/common/groups.h"

/// Reductions over some axes; by default over all.
namespace moka::ops {

/// The type of x without the reduced axes, or with size 1 there. With `needs_elements`, a reduction of no elements is
/// an error.
InferFn reduced_type(bool needs_elements);
/// The reduced axes, counted from the front.
Result<Ints> reduced_axes(const OpCall& call, int rank);

namespace detail {

template <class Acc>
Status reduce(const OpCall& call, const TensorView& out) {
  const TensorView& x = call.in("x");
  const Ints axes = MOKA_TRY(reduced_axes(call, x.shape.rank()));
  const Groups groups(x.shape, axes);
  const int64_t n = groups.size();
  const bool whole = is_integer(x.dtype) || x.dtype == DType::boolean;
  groups.each_group([&](int64_t g, int64_t first) {
    if (whole) {
      typename Acc::Whole acc;
      groups.each_member(first, [&](int64_t i) { acc.add(load_i64(x, i)); });
      const auto y = acc.result(n);
      if constexpr (std::is_same_v<decltype(acc.result(n)), int64_t>) {
        store_i64(out, g, y);
      } else {
        store_f64(out, g, y);
      }
      return;
    }
    typename Acc::Real acc;
    if (x.dtype == DType::fp32) {
      const float* data = x.as<float>();
      groups.each_run(first, [&](int64_t at, int64_t m, int64_t stride) {
        for (int64_t i = 0; i < m; i++) acc.add(static_cast<double>(data[at + i * stride]));
      });
    } else {
      groups.each_member(first, [&](int64_t i) { acc.add(load_f64(x, i)); });
    }
    store_f64(out, g, acc.result(n));
  });
  return {};
}

}  // namespace detail

/// Acc::Real accumulates doubles and Acc::Whole int64_t, by add(value) and result(number of values). An int64_t result
/// of Whole wraps to the dtype; a double is truncated.
template <class Acc>
OpBuilder reduction(std::string name, std::string doc, bool needs_elements = false) {
  return OpBuilder(std::move(name), std::move(doc))
      .type_var("T", kF16F32 | kI32)
      .in("x", "T")
      .constant("axes", kI32)
      .optional()
      .constant("keep_dims", kBool)
      .or_else(Tensor::boolean(false))
      .infer(reduced_type(needs_elements))
      .reference([](const OpCall& call, std::span<const TensorView> out) -> Status {
        return detail::reduce<Acc>(call, out[0]);
      })
      .note(
          "The reference sums floats in double and rounds once. Faster kernels may use float32, within the "
          "tolerance.",
          "MIL leaves the order open")
      .note("Without `axes` all axes are reduced. Negative axes count from the end.", "coremltools' definition")
      .note(
          "Reducing no element gives the empty sum (0), product (1), mean (NaN) or logarithm (-inf). For reduce_max "
          "and "
          "reduce_min it is an error.",
          "NumPy");
}

/// One accumulator for doubles and integers. Integers are added as doubles.
template <class R>
struct AsReal {
  using Real = R;
  struct Whole : R {
    void add(int64_t v) { R::add(static_cast<double>(v)); }
  };
};

/// Adds the parameter that selects the type of indices, introduced in iOS17.
void add_output_dtype(OpVersion& v);
InferFn arg_type(bool has_output_dtype);

/// An operation that returns the index of the best value. before(a, b): whether a is better than b, the best value so
/// far. NaN is better than every number. The first of equal values wins.
template <class Before>
OpBuilder reduce_arg(std::string name, std::string doc, Before before) {
  return OpBuilder(std::move(name), std::move(doc))
      .type_var("T", kF16F32 | kI32)
      .in("x", "T")
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .constant("keep_dims", kBool)
      .or_else(Tensor::boolean(false))
      .infer(arg_type(false))
      .reference([before](const OpCall& call, std::span<const TensorView> out) -> Status {
        const TensorView& x = call.in("x");
        const int axis = MOKA_TRY(axis_of(call, "axis", x.shape.rank()));
        const Groups groups(x.shape, {axis});
        const int64_t n = x.shape[axis], stride = x.shape.count(axis + 1, x.shape.rank());
        groups.each_group([&](int64_t g, int64_t first) {
          int64_t best = 0;
          if (is_float(x.dtype)) {
            double top = load_f64(x, first);
            for (int64_t i = 1; i < n && top == top; i++) {
              const double v = load_f64(x, first + i * stride);
              if (before(top, v) || v != v) {
                top = v;
                best = i;
              }
            }
          } else {
            int64_t top = load_i64(x, first);
            for (int64_t i = 1; i < n; i++) {
              const int64_t v = load_i64(x, first + i * stride);
              if (before(top, v)) {
                top = v;
                best = i;
              }
            }
          }
          store_i64(out[0], g, best);
        });
        return {};
      })
      .at(Opset::ios17, add_output_dtype)
      .note("Of equal elements the first wins.", "numpy.argmax, torch.argmax on the CPU")
      .note("The first NaN wins over every number.", "numpy.argmax, torch.argmax")
      .note("With uint16, indices above 65535 wrap.", "a cast of NumPy's result; the definition is silent");
}

}  // namespace moka::ops
