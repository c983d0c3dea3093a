// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"
#include "ops/common/common.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_constexpr_cast(const OpCall& call) {
  const std::string_view to = MOKA_TRY(call.text("output_dtype"));
  if (to != "fp32") return call.error("output_dtype", "'fp32'", cat("'", to, "'"));
  const Type& x = call.type("source_val");
  return one(x.is_ranked() ? Type::tensor(DType::fp32, x.shape()) : Type::unranked(DType::fp32));
}

Status constexpr_cast_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("source_val");
  half_to_float(x.as<uint16_t>(), out[0].as<float>(), static_cast<size_t>(x.count()));
  return {};
}

}  // namespace

OpDef define_constexpr_cast() {
  return OpBuilder("constexpr_cast", "Half precision weights as single precision.", Opset::ios16)
      .constant("source_val", only(DType::fp16))
      .attribute()
      .constant("output_dtype", kString)
      .attribute()
      .infer(infer_constexpr_cast)
      .reference(constexpr_cast_reference)
      .traits(Trait::constexpr_weight)
      .at(Opset::ios18,
          [](OpVersion& v) {
            for (ParamDef& p : v.params) p.attribute = false;
          })
      .note("Only from fp16 to fp32.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
