// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "base/half.h"
#include "ops/common/broadcast.h"
#include "ops/common/common.h"

/// Operations of two inputs that broadcast against each other.
namespace moka::ops {

/// Infers the broadcast shape of x and y with the element type `result`; DType::none: that of x.
InferFn broadcast_xy(DType result = DType::none);

namespace detail {

template <class T, class Out, class F>
void broadcast_rows(const BroadcastWalk& walk, const T* x, const T* y, Out* out, int64_t count, F f) {
  const int64_t n = walk.row(), sx = walk.row_stride(0), sy = walk.row_stride(1);
  walk.each_row(count, [&](int64_t o, int64_t ix, int64_t iy, int64_t) {
    const T* a = x + ix;
    const T* b = y + iy;
    Out* z = out + o;
    if (sx != 0 && sy != 0) {
      for (int64_t i = 0; i < n; i++) z[i] = f(a[i], b[i]);
    } else if (sx != 0) {
      const T c = b[0];
      for (int64_t i = 0; i < n; i++) z[i] = f(a[i], c);
    } else if (sy != 0) {
      const T c = a[0];
      for (int64_t i = 0; i < n; i++) z[i] = f(c, b[i]);
    } else {
      const Out c = f(a[0], b[0]);
      for (int64_t i = 0; i < n; i++) z[i] = c;
    }
  });
}

template <class F>
void broadcast_each(const BroadcastWalk& walk, int64_t count, F f) {
  const int64_t n = walk.row(), sx = walk.row_stride(0), sy = walk.row_stride(1);
  walk.each_row(count, [&](int64_t o, int64_t ix, int64_t iy, int64_t) {
    for (int64_t i = 0; i < n; i++) f(o + i, ix + i * sx, iy + i * sy);
  });
}

}  // namespace detail

/// z = f(x, y) with the dtype of x. `f` takes two floats or two doubles, `g` two int64_t. Integers wrap.
template <class F, class G>
void map_pairs(const TensorView& x, const TensorView& y, const TensorView& z, F f, G g) {
  const int64_t count = z.count();
  if (count == 0) return;
  const BroadcastWalk walk(z.shape, {&x.shape, &y.shape});
  switch (x.dtype) {
    case DType::fp32:
      detail::broadcast_rows(walk, x.as<float>(), y.as<float>(), z.as<float>(), count,
                             [f](float a, float b) { return static_cast<float>(f(a, b)); });
      return;
    case DType::fp16:
      detail::broadcast_rows(
          walk, x.as<uint16_t>(), y.as<uint16_t>(), z.as<uint16_t>(), count, [f](uint16_t a, uint16_t b) {
            return half(static_cast<double>(
                            f(static_cast<double>(half::to_float(a)), static_cast<double>(half::to_float(b)))))
                .bits;
          });
      return;
    case DType::int32:
      detail::broadcast_rows(walk, x.as<int32_t>(), y.as<int32_t>(), z.as<int32_t>(), count, [g](int32_t a, int32_t b) {
        return static_cast<int32_t>(g(static_cast<int64_t>(a), static_cast<int64_t>(b)));
      });
      return;
    default:
      if (is_float(x.dtype)) {
        detail::broadcast_each(
            walk, count, [&](int64_t o, int64_t a, int64_t b) { store_f64(z, o, f(load_f64(x, a), load_f64(y, b))); });
      } else {
        detail::broadcast_each(
            walk, count, [&](int64_t o, int64_t a, int64_t b) { store_i64(z, o, g(load_i64(x, a), load_i64(y, b))); });
      }
  }
}

/// z = f(x, y), where z is boolean. `f` takes two floats, two doubles or two int64_t.
template <class F>
void compare_pairs(const TensorView& x, const TensorView& y, const TensorView& z, F f) {
  const int64_t count = z.count();
  if (count == 0) return;
  const BroadcastWalk walk(z.shape, {&x.shape, &y.shape});
  auto* out = z.as<uint8_t>();
  switch (x.dtype) {
    case DType::fp32:
      detail::broadcast_rows(walk, x.as<float>(), y.as<float>(), out, count,
                             [f](float a, float b) { return static_cast<uint8_t>(f(a, b)); });
      return;
    case DType::int32:
      detail::broadcast_rows(walk, x.as<int32_t>(), y.as<int32_t>(), out, count, [f](int32_t a, int32_t b) {
        return static_cast<uint8_t>(f(static_cast<int64_t>(a), static_cast<int64_t>(b)));
      });
      return;
    default:
      if (is_float(x.dtype)) {
        detail::broadcast_each(walk, count,
                               [&](int64_t o, int64_t a, int64_t b) { out[o] = f(load_f64(x, a), load_f64(y, b)); });
      } else {
        detail::broadcast_each(walk, count,
                               [&](int64_t o, int64_t a, int64_t b) { out[o] = f(load_i64(x, a), load_i64(y, b)); });
      }
  }
}

inline constexpr DTypes kArithmetic = kF16F32 | kI32;

/// An operation whose result has the type of its inputs.
template <class F, class G>
OpBuilder binary(std::string name, std::string doc, F f, G g, Trait extra = Trait::none) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", kArithmetic).in("x", "T").in("y", "T").infer(broadcast_xy()).traits(Trait::elementwise | extra);
  b.reference([f, g](const OpCall& call, std::span<const TensorView> out) -> Status {
    map_pairs(call.in("x"), call.in("y"), out[0], f, g);
    return {};
  });
  b.note("Shapes broadcast as in NumPy; ranks may differ.", "coremltools' definition");
  b.note("Integers are computed exactly and wrap to their type.", "NumPy");
  return b;
}

/// An operation whose result is a boolean.
template <class F>
OpBuilder comparison(std::string name, std::string doc, F f, Trait extra = Trait::none, DTypes domain = kArithmetic) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", domain)
      .in("x", "T")
      .in("y", "T")
      .infer(broadcast_xy(DType::boolean))
      .traits(Trait::elementwise | extra);
  b.reference([f](const OpCall& call, std::span<const TensorView> out) -> Status {
    compare_pairs(call.in("x"), call.in("y"), out[0], f);
    return {};
  });
  b.note("Shapes broadcast as in NumPy; ranks may differ.", "coremltools' definition");
  if (domain != kBool) b.note("NaN is not equal to, less than or greater than anything; -0 equals 0.", "IEEE 754");
  return b;
}

}  // namespace moka::ops
