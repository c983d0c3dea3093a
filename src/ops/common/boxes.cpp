// SPDX-License-Identifier: Apache-2.0
#include "ops/common/boxes.h"

#include "ops/common/common.h"

namespace moka::ops {

namespace {

Result<BoxMode> box_mode(const OpCall& call) {
  const std::string_view text = MOKA_TRY(call.text("box_coordinate_mode"));
  if (text == "CORNERS_HEIGHT_FIRST") return BoxMode{true, false};
  if (text == "CORNERS_WIDTH_FIRST") return BoxMode{false, false};
  if (text == "CENTER_SIZE_HEIGHT_FIRST") return BoxMode{true, true};
  if (text == "CENTER_SIZE_WIDTH_FIRST") return BoxMode{false, true};
  return call.error("box_coordinate_mode",
                    "CORNERS_HEIGHT_FIRST, CORNERS_WIDTH_FIRST, CENTER_SIZE_HEIGHT_FIRST or CENTER_SIZE_WIDTH_FIRST",
                    cat("'", text, "'"));
}

}  // namespace

Result<BoxSettings> box_settings_of(const OpCall& call) {
  BoxSettings s;
  s.mode = MOKA_TRY(box_mode(call));
  s.sampling = MOKA_TRY(sampling_of(call));
  s.scale = MOKA_TRY(call.number("spatial_scale"));
  s.normalized = MOKA_TRY(call.flag("normalized_coordinates"));
  return s;
}

OpBuilder& box_params(OpBuilder& builder) {
  return builder.constant("target_height", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("target_width", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("normalized_coordinates", kBool)
      .or_else(Tensor::boolean(false))
      .constant("spatial_scale", only(DType::fp32))
      .or_else(Tensor::scalar(DType::fp32, 1))
      .constant("box_coordinate_mode", kString)
      .one_of({"CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST", "CENTER_SIZE_WIDTH_FIRST"})
      .or_else(Tensor::text("CORNERS_HEIGHT_FIRST"))
      .constant("sampling_mode", kString)
      .one_of({"DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"})
      .or_else(Tensor::text("DEFAULT"));
}

Status check_box_sizes(const OpCall& call) {
  for (const char* p : {"target_height", "target_width"})
    if (const int64_t size = MOKA_TRY(call.integer(p)); size < 1) return call.error(p, "1 or more", cat(size));
  return {};
}

BoxSides box_sides(const BoxSettings& s, const TensorView& boxes, int64_t first, const Shape& x, const Shape& y) {
  double v[4];
  for (int64_t i = 0; i < 4; ++i) v[i] = load_f64(boxes, first + i) * s.scale;
  const int at_h = s.mode.height_first ? 0 : 1, at_w = 1 - at_h;
  const auto side = [&](int at, int64_t size, int64_t samples) {
    double start = v[at], end = v[at + 2];
    if (s.mode.center_size) {
      const double half = end / 2;
      end = start + half;
      start -= half;
    }
    if (s.normalized) {
      start *= static_cast<double>(size - 1);
      end *= static_cast<double>(size - 1);
    }
    return BoxSide{start, end, size, samples, s.sampling};
  };
  const int r = y.rank();
  return {side(at_h, x[2], y[r - 2]), side(at_w, x[3], y[r - 1])};
}

}  // namespace moka::ops
