// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/common/boxes.h"
#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/recurrent.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_crop_resize_gradient(const OpCall& call) {
  MOKA_TRY(box_settings_of(call));
  MOKA_TRY(check_box_sizes(call));
  const Type& x = call.type("x");
  if (any_unranked(call, {"x", "boxes", "box_indices", "dy"})) return one(x);
  if (x.rank() != 4) return call.error("x", "rank 4", cat(x.shape()));
  const int64_t count = call.shape("boxes").rank() > 0 ? call.shape("boxes")[0] : kAnyDim;
  MOKA_TRY(check_shape(call, "boxes", {count, 4}));
  MOKA_TRY(check_shape(call, "box_indices", {count}));
  MOKA_TRY(check_shape(
      call, "dy",
      {count, x.shape()[1], MOKA_TRY(call.integer("target_height")), MOKA_TRY(call.integer("target_width"))}));
  return one(x);
}

/// Gives the two elements of a tap their shares.
template <class Add>
void share(const Tap& t, double d, const Add& add) {
  add(t.low, d * (1 - t.part));
  if (t.part != 0) add(t.high, d * t.part);
}

Status crop_resize_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView &boxes = call.in("boxes"), &indices = call.in("box_indices"), &dy = call.in("dy");
  const Shape& x = out[0].shape;
  const BoxSettings settings = MOKA_TRY(box_settings_of(call));
  std::vector<double> sums(static_cast<size_t>(out[0].count()));
  int64_t at = 0;
  for (int64_t n = 0; n < boxes.shape[0]; ++n) {
    const int64_t image = load_i64(indices, n);
    if (image < 0 || image >= x[0])
      return fail(ErrorCode::data, "operation '", call.name(), "' (moka_crop_resize_gradient): box ", n,
                  " is of image ", image, ", expected 0 to ", x[0] - 1);
    const BoxSides sides = box_sides(settings, boxes, n * 4, x, dy.shape);
    for (int64_t c = 0; c < x[1]; ++c) {
      double* const plane = sums.data() + (image * x[1] + c) * x[2] * x[3];
      for (int64_t i = 0; i < dy.shape[2]; ++i) {
        const double row = sides.rows.at(i);
        for (int64_t j = 0; j < dy.shape[3]; ++j) {
          const double column = sides.columns.at(j), d = load_f64(dy, at++);
          if (!sides.rows.contains(row) || !sides.columns.contains(column)) continue;
          const Tap across = tap_at(column, x[3]);
          share(tap_at(row, x[2]), d, [&](int64_t r, double part) {
            share(across, part, [&](int64_t k, double value) { plane[r * x[3] + k] += value; });
          });
        }
      }
    }
  }
  for (int64_t i = 0; i < out[0].count(); ++i) store_f64(out[0], i, sums[static_cast<size_t>(i)]);
  return {};
}

}  // namespace

OpDef define_moka_crop_resize_gradient() {
  OpBuilder b("moka_crop_resize_gradient",
              "The gradient of crop_resize's x from the gradient dy [boxes, channels, height, width] of its result. "
              "Each box has the index of its image.",
              Opset::ios13);
  b.type_var("T", kF16F32)
      .type_var("U", any_of(DType::fp16, DType::fp32, DType::uint16))
      .in("x", "T")
      .in("boxes", "U")
      .in("box_indices", kI32)
      .in("dy", "T");
  return box_params(b)
      .infer(infer_crop_resize_gradient)
      .reference(crop_resize_gradient_reference)
      .note("Boxes have no gradient.", "torchvision.ops.roi_align")
      .build();
}

}  // namespace moka::ops
