#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_upsample_nearest_neighbor(const OpCall& call) {
  if (any_unranked(call, {"x"})) return one(Type::unranked(call.dtype("x")));
  const Shape& x = call.shape("x");
  if (x.rank() < 3) return call.error("x", "rank 3 or more", cat(x));
  const int64_t height = MOKA_TRY(upsampled_size(call, "scale_factor_height", x[x.rank() - 2]));
  const int64_t width = MOKA_TRY(upsampled_size(call, "scale_factor_width", x[x.rank() - 1]));
  return one(MOKA_TRY(resized_type(call, height, width)));
}

Status upsample_nearest_neighbor_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  resize_nearest_2d(call.in("x"), out[0], nearest_top_left);
  return {};
}

}  // namespace

OpDef define_upsample_nearest_neighbor() {
  constexpr DTypes scale = any_of(DType::fp32, DType::int32);
  return OpBuilder("upsample_nearest_neighbor",
                   "Resizes the last two dimensions by scale factors, repeating elements: output i reads floor(i * in "
                   "/ out).")
      .type_var("T", kF16F32)
      .type_var("U", scale)
      .in("x", "T")
      .constant("scale_factor_height", "U")
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("scale_factor_width", "U")
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .infer(infer_upsample_nearest_neighbor)
      .reference(upsample_nearest_neighbor_reference)
      .traits(Trait::moves_data_only)
      .note("Output i reads floor(i * in / out), in whole numbers.", "torch.nn.functional.interpolate, nearest")
      .build();
}

}  // namespace moka::ops
