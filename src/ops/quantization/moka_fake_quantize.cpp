// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/common/common.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_moka_fake_quantize(const OpCall& call) {
  const double scale = MOKA_TRY(call.number("scale"));
  if (!(scale > 0) || !std::isfinite(scale)) return call.error("scale", "a positive number", cat(scale));
  const bool is_signed = MOKA_TRY(call.text("dtype")) == "int8";
  const int64_t zero = MOKA_TRY(call.integer("zero_point")), low = is_signed ? -128 : 0;
  if (zero < low || zero > low + 255) return call.error("zero_point", cat("from ", low, " to ", low + 255), cat(zero));
  return one(call.type("x"));
}

Status moka_fake_quantize_reference(const OpCall& call, std::span<const TensorView> out) {
  const float scale = static_cast<float>(MOKA_TRY(call.number("scale")));
  const float zero = static_cast<float>(MOKA_TRY(call.integer("zero_point")));
  const float low = MOKA_TRY(call.text("dtype")) == "int8" ? -128.0f : 0.0f;
  const float* x = call.in("x").as<float>();
  float* y = out[0].as<float>();
  for (int64_t i = 0; i < out[0].count(); i++) {
    const float q = std::nearbyint(x[i] / scale) + zero;
    y[i] = ((std::isnan(q) ? 0.0f : std::clamp(q, low, low + 255)) - zero) * scale;
  }
  return {};
}

}  // namespace

OpDef define_moka_fake_quantize() {
  return OpBuilder(
             "moka_fake_quantize",
             "x rounded to a value that 8 bits can represent: dequantize(quantize(x)). A pass makes it of these two so "
             "that products of the result can be computed with integers.")
      .type_var("T", only(DType::fp32))
      .in("x", "T")
      .constant("scale", "T")
      .constant("zero_point", kI32)
      .constant("dtype", kString)
      .one_of({"int8", "uint8"})
      .infer(infer_moka_fake_quantize)
      .reference(moka_fake_quantize_reference)
      .traits(Trait::elementwise)
      .note("(clip(round(x / scale) + zero_point) - zero_point) * scale, halves to even. NaN is quantized to 0.",
            "quantize and dequantize")
      .build();
}

}  // namespace moka::ops
