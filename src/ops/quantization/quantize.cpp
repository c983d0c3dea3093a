// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "ops/common/affine.h"
#include "ops/common/common.h"
#include "ops/common/packed.h"

namespace moka::ops {

namespace {

Result<DType> output_type(const OpCall& call) {
  const std::string_view name = MOKA_TRY(call.text("output_dtype"));
  const DType t = dtype_from_string(name);
  if (t != DType::int8 && t != DType::uint8)
    return call.error("output_dtype", "'int8' or 'uint8'", cat("'", name, "'"));
  return t;
}

Result<std::vector<Type>> infer_quantize(const OpCall& call) {
  const Type& x = call.type("input");
  const DType t = MOKA_TRY(output_type(call));
  if (call.has("zero_point") && call.dtype("zero_point") != t) {
    return call.error("zero_point", cat("element type ", t, " like output_dtype"), cat(call.dtype("zero_point")));
  }
  MOKA_TRY(check_affine(call, x));
  return one(x.is_ranked() ? Type::tensor(t, x.shape()) : Type::unranked(t));
}

/// The quotient is rounded to the type of the input, then to an integer, ties to even.
Status quantize_reference(const OpCall& call, std::span<const TensorView> out) {
  constexpr int64_t kChunk = 1024;
  const TensorView& x = call.in("input");
  const int64_t n = x.count();
  if (n == 0) return {};
  const Affine a = MOKA_TRY(affine_of(call, x.shape));
  BlockRuns runs(x.shape, a.groups);
  const bool is_signed = out[0].dtype == DType::int8, narrow = x.dtype == DType::fp16;
  const float low = is_signed ? -128.0f : 0.0f, high = is_signed ? 127.0f : 255.0f;
  float buffer[kChunk];
  for (int64_t at = 0; at < n; at += kChunk) {
    const int64_t chunk = std::min(kChunk, n - at);
    load_floats(x, at, chunk, buffer);
    for (int64_t i = 0; i < chunk;) {
      const int64_t m = std::min(runs.left(), chunk - i);
      const auto group = static_cast<size_t>(runs.group());
      for (int64_t k = i; k < i + m; k++) {
        float q = buffer[k] / a.scales[group];
        if (narrow) q = half(q);
        q = std::nearbyint(q) + a.zeros[group];
        const float v = std::isnan(q) ? 0.0f : std::clamp(q, low, high);
        if (is_signed)
          out[0].as<int8_t>()[at + k] = static_cast<int8_t>(v);
        else
          out[0].as<uint8_t>()[at + k] = static_cast<uint8_t>(v);
      }
      runs.advance(m);
      i += m;
    }
  }
  return {};
}

}  // namespace

OpDef define_quantize() {
  return OpBuilder("quantize", "round(input / scale) + zero_point, saturated, per tensor or per entry of an axis.",
                   Opset::ios17)
      .type_var("SrcT", kF16F32)
      .type_var("DstT", any_of(DType::int8, DType::uint8))
      .in("input", "SrcT")
      .constant("zero_point", "DstT")
      .optional()
      .constant("scale", "SrcT")
      .constant("axis", kI32)
      .optional()
      .constant("output_dtype", kString)
      .infer(infer_quantize)
      .reference(quantize_reference)
      .note(
          "input / scale is rounded to the type of the input, then to an integer, halves to even. zero_point is added "
          "and the sum "
          "saturates. NaN gives 0.",
          "coremltools' iOS17 test_quantization.py; torch.quantize_per_tensor for ties")
      .note("A scale of 0 gives infinities, which saturate; 0 / 0 is NaN, which gives 0.", "IEEE division")
      .note("Vectors vary along axis, which may be negative. Scalars need no axis.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
