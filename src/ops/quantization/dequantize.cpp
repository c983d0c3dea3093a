#include "ops/common/affine.h"
#include "ops/common/common.h"
#include "ops/common/packed.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_dequantize(const OpCall& call) {
  const Type& x = call.type("input");
  MOKA_TRY(check_affine(call, x));
  const DType dtype = call.dtype("scale");
  return one(x.is_ranked() ? Type::tensor(dtype, x.shape()) : Type::unranked(dtype));
}

Status dequantize_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("input");
  if (x.count() == 0) return {};
  const Affine a = MOKA_TRY(affine_of(call, x.shape));
  BlockRuns runs(x.shape, a.groups);
  shift_and_scale(out[0], x, 0, x.count(), runs, a.scales.data(), a.zeros.data());
  return {};
}

}  // namespace

OpDef define_dequantize() {
  return OpBuilder("dequantize", "scale * (input - zero_point), per tensor or per entry of an axis.", Opset::ios17)
      .type_var("DstT", kF16F32)
      .type_var("SrcT", any_of(DType::int8, DType::uint8))
      .in("input", "SrcT")
      .constant("zero_point", "SrcT")
      .optional()
      .constant("scale", "DstT")
      .constant("axis", kI32)
      .optional()
      .infer(infer_dequantize)
      .reference(dequantize_reference)
      .note("Difference and product are computed in float32. The result is rounded to the type of scale.",
            "coremltools' iOS17 test_quantization.py")
      .note("Vectors vary along axis, which may be negative. Scalars need no axis.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
