// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/half.h"
#include "ops/common/common.h"

/// Operations that compute each element of the result from the same element of `x`.
namespace moka::ops {

/// out[i] = f(x[i]). `f` takes float for fp32 and double for other floats, whose results are rounded once. For integers
/// and booleans it takes int64_t if it accepts that, otherwise double. Integer results wrap to the dtype of `out`.
template <class F>
void map_elements(const TensorView& x, const TensorView& out, F f) {
  const int64_t n = out.count();
  if (x.dtype == DType::fp32 && out.dtype == DType::fp32) {
    const float* a = x.as<float>();
    float* y = out.as<float>();
    for (int64_t i = 0; i < n; i++) y[i] = static_cast<float>(f(a[i]));
  } else if (x.dtype == DType::fp16 && out.dtype == DType::fp16) {
    const uint16_t* a = x.as<uint16_t>();
    uint16_t* y = out.as<uint16_t>();
    for (int64_t i = 0; i < n; i++) y[i] = half(static_cast<double>(f(static_cast<double>(half::to_float(a[i]))))).bits;
  } else if constexpr (std::is_invocable_v<F, int64_t>) {
    if (is_float(x.dtype)) {
      for (int64_t i = 0; i < n; i++) store_f64(out, i, f(load_f64(x, i)));
    } else {
      for (int64_t i = 0; i < n; i++) store_i64(out, i, f(load_i64(x, i)));
    }
  } else {
    for (int64_t i = 0; i < n; i++) store_f64(out, i, f(load_f64(x, i)));
  }
}

/// A floating-point function that rejects integers.
template <class F>
struct FloatsOnly {
  F f;
  float operator()(float v) const { return f(v); }
  double operator()(double v) const { return f(v); }
  double operator()(int64_t v) const = delete;
};

/// Overloads for floats and for integers.
template <class F, class G>
struct FloatsAndInts {
  F f;
  G g;
  float operator()(float v) const { return f(v); }
  double operator()(double v) const { return f(v); }
  int64_t operator()(int64_t v) const { return g(v); }
};

inline constexpr Note kElementwiseNote{"NaN gives NaN. float16 is computed in float32 or wider and rounded once.",
                                       "NumPy in float64, then rounded"};

/// An operation of one input; `f` is generic over float and double.
template <class F>
OpBuilder unary(std::string name, std::string doc, F f, DTypes domain = kF16F32) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", domain).in("x", "T").infer(same_as()).traits(Trait::elementwise);
  b.reference([f](const OpCall& call, std::span<const TensorView> out) -> Status {
    map_elements(call.in("x"), out[0], FloatsOnly<F>{f});
    return {};
  });
  b.note(kElementwiseNote.text, kElementwiseNote.evidence);
  return b;
}

/// As `unary`, but also for int32. `g` maps int64_t to int64_t.
template <class F, class G>
OpBuilder unary_with_int(std::string name, std::string doc, F f, G g) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", kF16F32 | kI32).in("x", "T").infer(same_as()).traits(Trait::elementwise);
  b.reference([f, g](const OpCall& call, std::span<const TensorView> out) -> Status {
    map_elements(call.in("x"), out[0], FloatsAndInts<F, G>{f, g});
    return {};
  });
  b.note(kElementwiseNote.text, kElementwiseNote.evidence);
  return b;
}

/// The value of a scalar parameter. A default is rounded to the precision of `x`, like an explicit value.
Result<double> scalar_param(const OpCall& call, std::string_view param);
/// Infers one output with the type of `x` and checks that these scalar parameters are known.
InferFn same_as_x_with_scalars(std::initializer_list<const char*> params);
/// Lets the float type of these parameters differ from that of `x` (type variable U) in a newer opset.
void own_float_type(OpVersion& v, std::initializer_list<const char*> params);

/// y = f(x, alpha), where f is generic over floating-point types. `param` names alpha, a constant scalar.
template <class F>
OpBuilder unary_with_param(std::string name, std::string doc, const char* param, F f) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", kF16F32)
      .in("x", "T")
      .constant(param, "T")
      .infer(same_as_x_with_scalars({param}))
      .traits(Trait::elementwise);
  b.reference([f, param](const OpCall& call, std::span<const TensorView> out) -> Status {
    const double alpha = MOKA_TRY(scalar_param(call, param));
    auto g = [f, alpha](auto x) { return f(x, static_cast<decltype(x)>(alpha)); };
    map_elements(call.in("x"), out[0], FloatsOnly<decltype(g)>{g});
    return {};
  });
  b.note(kElementwiseNote.text, kElementwiseNote.evidence);
  return b;
}

/// y = f(x, alpha, beta).
template <class F>
OpBuilder unary_with_alpha_beta(std::string name, std::string doc, F f) {
  OpBuilder b(std::move(name), std::move(doc));
  b.type_var("T", kF16F32).in("x", "T").constant("alpha", "T").constant("beta", "T").traits(Trait::elementwise);
  b.infer(same_as_x_with_scalars({"alpha", "beta"}));
  b.reference([f](const OpCall& call, std::span<const TensorView> out) -> Status {
    const double alpha = MOKA_TRY(scalar_param(call, "alpha")), beta = MOKA_TRY(scalar_param(call, "beta"));
    auto g = [f, alpha, beta](auto x) {
      using T = decltype(x);
      return f(x, static_cast<T>(alpha), static_cast<T>(beta));
    };
    map_elements(call.in("x"), out[0], FloatsOnly<decltype(g)>{g});
    return {};
  });
  b.note(kElementwiseNote.text, kElementwiseNote.evidence);
  return b;
}

}  // namespace moka::ops
