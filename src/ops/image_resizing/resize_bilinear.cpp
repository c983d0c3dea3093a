// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_resize_bilinear(const OpCall& call) {
  MOKA_TRY(sampling_of(call));
  return infer_resized(call);
}

Status resize_bilinear_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  resize_linear_2d(call.in("x"), out[0], MOKA_TRY(sampling_of(call)));
  return {};
}

void resize_bilinear_gradient(Gradient& g) { resize_gradient(g); }

}  // namespace

OpDef define_resize_bilinear() {
  OpBuilder b("resize_bilinear", "Resizes the last two dimensions to a target size, bilinearly, on a sampling grid.");
  b.type_var("T", kF16F32)
      .in("x", "T")
      .constant("target_size_height", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("target_size_width", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1));
  return sampling_mode(b)
      .infer(infer_resize_bilinear)
      .reference(resize_bilinear_reference)
      .note(kGridNote.text, kGridNote.evidence)
      .note("Positions beyond the edges are clamped.", "coremltools' definition")
      .gradient(resize_bilinear_gradient)
      .build();
}

}  // namespace moka::ops
