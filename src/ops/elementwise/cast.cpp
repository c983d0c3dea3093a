// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"
#include "ir/gradient.h"
#include "ops/common/common.h"

namespace moka::ops {

namespace {

inline constexpr DTypes kCastable = kF16F32 | kI32 | kBool;
inline constexpr DTypes kCastableIos17 = kCastable | any_of(DType::int8, DType::uint8, DType::int16, DType::uint16);

Result<std::vector<Type>> infer_cast(const OpCall& call) {
  const std::string_view name = MOKA_TRY(call.text("dtype"));
  const DType to = dtype_from_string(name);
  if ((only(to) & (kNumbers | kBool)) == 0) return call.error("dtype", "a number type or bool", name);
  const Type& x = call.type("x");
  if (x.dtype() == DType::string) return call.error("x", "numbers or booleans", "strings");
  if (!x.is_ranked()) return one(Type::unranked(to));
  return one(Type::tensor(to, x.shape()));
}

Status cast_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &y = out[0];
  const int64_t n = y.count();
  if (x.dtype == y.dtype) {
    copy_elements(y, 0, x, 0, n);
  } else if (x.dtype == DType::fp16 && y.dtype == DType::fp32) {
    half_to_float(x.as<uint16_t>(), y.as<float>(), static_cast<size_t>(n));
  } else if (x.dtype == DType::fp32 && y.dtype == DType::fp16) {
    float_to_half(x.as<float>(), y.as<uint16_t>(), static_cast<size_t>(n));
  } else if (x.dtype == DType::int32 && y.dtype == DType::fp32) {
    for (int64_t i = 0; i < n; i++) y.as<float>()[i] = static_cast<float>(x.as<int32_t>()[i]);
  } else if (is_float(x.dtype)) {
    for (int64_t i = 0; i < n; i++) store_f64(y, i, load_f64(x, i));
  } else if (y.dtype == DType::boolean) {
    for (int64_t i = 0; i < n; i++) y.as<uint8_t>()[i] = load_i64(x, i) != 0;
  } else if (is_float(y.dtype)) {
    for (int64_t i = 0; i < n; i++) store_f64(y, i, load_f64(x, i));
  } else {
    for (int64_t i = 0; i < n; i++) store_i64(y, i, load_i64(x, i));
  }
  return {};
}

void cast_gradient(Gradient& g) { g.set("x", g.dy()); }

}  // namespace

OpDef define_cast() {
  return OpBuilder(
             "cast",
             "Converts elements to another type. Floats become integers by truncation and saturation, integers wrap, "
             "anything but 0 becomes true.")
      .type_var("T", kCastable)
      .in("x", "T")
      .constant("dtype", kString)
      .infer(infer_cast)
      .reference(cast_reference)
      .traits(Trait::elementwise)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kCastableIos17); })
      .note(
          "Floats are truncated towards zero when they become integers. Outside of the type's range they saturate; NaN "
          "becomes 0.",
          "coremltools' TestCast for values inside; outside, C++ leaves it open, and saturation is what ARM's "
          "conversions "
          "do")
      .note("Integers wrap to narrower types. Anything but zero is true, also NaN.",
            "numpy.ndarray.astype; for int32 to int16 reports of Core ML's runtime differ, see docs/numerics.md")
      .note(
          "A cast to float16 rounds to nearest, ties to even; values above 65519 become infinite. Unless precision is "
          "exact, "
          "casts between floats do not round.",
          "IEEE 754; Core ML's types are a minimum precision")
      .gradient(cast_gradient)
      .build();
}

}  // namespace moka::ops
