// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
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
  if (out[0].dtype == DType::fp64) {
    const TensorView& scale = call.in("scale");
    for (int64_t i = 0; i < x.count(); ++i, runs.advance(1)) {
      const double zero = static_cast<double>(a.zeros[static_cast<size_t>(runs.group())]);
      store_f64(out[0], i, (load_f64(x, i) - zero) * load_f64(scale, scale.count() > 1 ? runs.group() : 0));
    }
    return {};
  }
  shift_and_scale(out[0], x, 0, x.count(), runs, a.scales.data(), a.zeros.data());
  return {};
}

/// The scales have a gradient, the integers have none.
void dequantize_gradient(Gradient& g) {
  if (!g.wants("scale")) return;
  const Shape& x = g.y().shape();
  const Term scale{g, g.op().input("scale")};
  const DType type = g.y().value()->type.dtype();
  const auto along_axis = [&](Term numbers) {
    Shape along;
    for (int i = 0; i < x.rank(); i++) along.push_back(1);
    if (numbers.rank() > 0) along[static_cast<int>((g.integer("axis") + x.rank()) % x.rank())] = numbers.shape()[0];
    return along;
  };
  Term steps = g.cast({g, g.op().input("input")}, type);
  if (g.has("zero_point")) {
    const Term zero = g.cast({g, g.op().input("zero_point")}, type);
    steps = steps - g.reshape(zero, along_axis(zero));
  }
  g.set("scale", g.reshape(g.to_shape(g.dy() * steps, along_axis(scale)), scale.shape()));
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
      .gradient(dequantize_gradient)
      .note("Difference and product are computed in float32. The result is rounded to the type of scale.",
            "coremltools' iOS17 test_quantization.py")
      .note("Vectors vary along axis, which may be negative. Scalars need no axis.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
