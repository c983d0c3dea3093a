#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_resize_nearest_neighbor(const OpCall& call) {
  const int64_t height = MOKA_TRY(call.integer("target_size_height")),
                width = MOKA_TRY(call.integer("target_size_width"));
  if (height < 1) return call.error("target_size_height", "1 or more", cat(height));
  if (width < 1) return call.error("target_size_width", "1 or more", cat(width));
  if (any_unranked(call, {"x"})) return one(Type::unranked(call.dtype("x")));
  return one(MOKA_TRY(resized_type(call, height, width)));
}

Status resize_nearest_neighbor_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  resize_nearest_2d(call.in("x"), out[0], nearest_half_pixel);
  return {};
}

}  // namespace

OpDef define_resize_nearest_neighbor() {
  return OpBuilder("resize_nearest_neighbor",
                   "Resizes the last two dimensions to a target size: output i reads floor((i + 0.5) * in / out).")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("target_size_height", kI32)
      .constant("target_size_width", kI32)
      .infer(infer_resize_nearest_neighbor)
      .reference(resize_nearest_neighbor_reference)
      .traits(Trait::moves_data_only)
      .note("Output i reads floor((i + 0.5) * in / out), in whole numbers.",
            "coremltools' test of resize_nearest_neighbor; tensorflow's half pixel centres")
      .build();
}

}  // namespace moka::ops
