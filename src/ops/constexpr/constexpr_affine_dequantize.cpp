// SPDX-License-Identifier: Apache-2.0
#include "ops/common/affine.h"
#include "ops/common/common.h"
#include "ops/common/packed.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_constexpr_affine_dequantize(const OpCall& call) {
  const Type& data = call.type("quantized_data");
  if (!data.is_concrete()) return call.error("quantized_data", "a constant of known shape", cat(data));
  MOKA_TRY(check_affine(call, data));
  return one(Type::tensor(call.dtype("scale"), data.shape()));
}

Status constexpr_affine_dequantize_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& data = call.in("quantized_data");
  if (data.count() == 0) return {};
  const Affine a = MOKA_TRY(affine_of(call, data.shape));
  BlockRuns runs(data.shape, a.groups);
  shift_and_scale(out[0], data, 0, data.count(), runs, a.scales.data(), a.zeros.data());
  return {};
}

}  // namespace

OpDef define_constexpr_affine_dequantize() {
  return OpBuilder("constexpr_affine_dequantize",
                   "Weights as scale * (quantized_data - zero_point), per tensor or per entry "
                   "of an axis.",
                   Opset::ios16)
      .type_var("SrcT", any_of(DType::int8, DType::uint8))
      .type_var("ZeroPointT", any_of(DType::int8, DType::uint8, DType::fp32))
      .type_var("DstT", kF16F32)
      .constant("quantized_data", "SrcT")
      .attribute()
      .constant("zero_point", "ZeroPointT")
      .attribute()
      .constant("scale", "DstT")
      .attribute()
      .constant("axis", kI32)
      .attribute()
      .infer(infer_constexpr_affine_dequantize)
      .reference(constexpr_affine_dequantize_reference)
      .traits(Trait::constexpr_weight)
      .note("Difference and product are computed in float32. The result is rounded to the type of scale.",
            "coremltools' value inference, decompress")
      .note("Vectors vary along axis, which may be negative. Scalars need no axis.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
