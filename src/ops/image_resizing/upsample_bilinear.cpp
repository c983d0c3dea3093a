// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_upsample_bilinear(const OpCall& call) {
  MOKA_TRY(upsampling_of(call));
  return infer_upsampled(call);
}

Status upsample_bilinear_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  resize_linear_2d(call.in("x"), out[0], MOKA_TRY(upsampling_of(call)));
  return {};
}

void upsample_bilinear_gradient(Gradient& g) { resize_gradient(g); }

}  // namespace

OpDef define_upsample_bilinear() {
  return upsample_builder(
             "upsample_bilinear",
             "Resizes the last two dimensions by scale factors, bilinearly; the sampling grid follows the resulting "
             "sizes, not the factors.")
      .constant("align_corners", kBool)
      .or_else(Tensor::boolean(true))
      .infer(infer_upsample_bilinear)
      .reference(upsample_bilinear_reference)
      .at(Opset::ios16,
          [](OpVersion& v) {
            ParamDef p;
            p.name = "half_pixel_centers";
            p.dtypes = kBool;
            p.constant = true;
            p.optional = true;
            v.params.push_back(std::move(p));
          })
      .note("Sizes are floor(scale * size), with the product in float32. The grid follows the sizes, not the scales.",
            "coremltools' definition: recompute_scale_factor of PyTorch")
      .note(
          "align_corners means STRICT_ALIGN_CORNERS of resize_bilinear, half_pixel_centers UNALIGN_CORNERS, neither "
          "DEFAULT; both at once are refused.",
          "coremltools' definition")
      .gradient(upsample_bilinear_gradient)
      .build();
}

}  // namespace moka::ops
