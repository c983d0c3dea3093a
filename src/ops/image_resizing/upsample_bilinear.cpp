#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_upsample_bilinear(const OpCall& call) {
  MOKA_TRY(upsampling_of(call));
  if (any_unranked(call, {"x"})) return one(Type::unranked(call.dtype("x")));
  const Shape& x = call.shape("x");
  if (x.rank() < 3) return call.error("x", "rank 3 or more", cat(x));
  const int64_t height = MOKA_TRY(upsampled_size(call, "scale_factor_height", x[x.rank() - 2]));
  const int64_t width = MOKA_TRY(upsampled_size(call, "scale_factor_width", x[x.rank() - 1]));
  return one(MOKA_TRY(resized_type(call, height, width)));
}

Status upsample_bilinear_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  resize_linear_2d(call.in("x"), out[0], MOKA_TRY(upsampling_of(call)));
  return {};
}

}  // namespace

OpDef define_upsample_bilinear() {
  constexpr DTypes scale = any_of(DType::fp32, DType::int32);
  return OpBuilder(
             "upsample_bilinear",
             "Resizes the last two dimensions by scale factors, bilinearly; the sampling grid follows the resulting "
             "sizes, not the factors.")
      .type_var("T", kF16F32)
      .type_var("U", scale)
      .in("x", "T")
      .constant("scale_factor_height", "U")
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("scale_factor_width", "U")
      .or_else(Tensor::scalar_i64(DType::int32, 1))
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
      .note("Sizes are floor(scale * size), the product taken in float32; the grid follows the sizes, not the scales.",
            "coremltools' definition: recompute_scale_factor of PyTorch")
      .note(
          "align_corners is STRICT_ALIGN_CORNERS of resize_bilinear, half_pixel_centers UNALIGN_CORNERS, neither "
          "DEFAULT; both at once are refused.",
          "coremltools' definition")
      .build();
}

}  // namespace moka::ops
