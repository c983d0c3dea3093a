#include <cmath>

#include "ops/common/common.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

/// iOS17 introduced boxes [N, 4] and box_indices [N]; earlier versions have roi [N, 1, 4 or 5, 1, 1].
bool has_boxes(const OpCall& call) { return call.version().since >= Opset::ios17; }

struct BoxMode {
  bool height_first = true;
  bool center_size = false;
};

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

Result<std::vector<Type>> infer_crop_resize(const OpCall& call) {
  MOKA_TRY(box_mode(call));
  MOKA_TRY(sampling_of(call));
  MOKA_TRY(call.number("spatial_scale"));
  const bool normalized = MOKA_TRY(call.flag("normalized_coordinates"));
  const int64_t height = MOKA_TRY(call.integer("target_height")), width = MOKA_TRY(call.integer("target_width"));
  if (height < 1) return call.error("target_height", "1 or more", cat(height));
  if (width < 1) return call.error("target_width", "1 or more", cat(width));
  const DType dtype = call.dtype("x");
  if (any_unranked(call, {"x"})) return one(Type::unranked(dtype));
  const Shape& x = call.shape("x");
  if (x.rank() != 4) return call.error("x", "rank 4", cat(x));
  if (x[2] == 0 || x[3] == 0) return call.error("x", "at least one row and one column", cat(x));
  if (!has_boxes(call)) {
    if (any_unranked(call, {"roi"})) return one(Type::tensor(dtype, {kAnyDim, kAnyDim, x[1], height, width}));
    const Shape& roi = call.shape("roi");
    const bool fits = roi.rank() == 5 && may_equal(roi[1], 1) && (roi[2] < 0 || roi[2] == 4 || roi[2] == 5) &&
                      may_equal(roi[3], 1) && may_equal(roi[4], 1);
    if (!fits) return call.error("roi", "shape [N, 1, 4, 1, 1] or [N, 1, 5, 1, 1]", cat(roi));
    return one(Type::tensor(dtype, {roi[0], roi[2] == 4 ? x[0] : roi[2] == 5 ? 1 : kAnyDim, x[1], height, width}));
  }
  if (normalized && !is_float(call.dtype("boxes"))) {
    return call.error("boxes", "fp16 or fp32, because normalized_coordinates is true", to_string(call.dtype("boxes")));
  }
  if (any_unranked(call, {"boxes"})) return one(Type::tensor(dtype, {kAnyDim, x[1], height, width}));
  const Shape& boxes = call.shape("boxes");
  if (boxes.rank() != 2 || !may_equal(boxes[1], 4)) return call.error("boxes", "shape [N, 4]", cat(boxes));
  int64_t count = boxes[0];
  if (call.has("box_indices")) {
    if (call.type("box_indices").is_ranked()) {
      const Shape& indices = call.shape("box_indices");
      if (indices.rank() != 1 || !may_equal(indices[0], count))
        return call.error("box_indices", cat("shape [", count, "]"), cat(indices));
      count = known_of(count, indices[0]);
    }
  } else if (count >= 0 && x[0] >= 0 && count > x[0]) {
    return call.error("box_indices", cat("a value, because there are more boxes than the ", x[0], " images of x"),
                      "none");
  }
  return one(Type::tensor(dtype, {count, x[1], height, width}));
}

/// The positions of samples along one side of a box.
struct Side {
  double start, end;
  int64_t size;  // the image's size
  int64_t samples;
  Sampling mode;

  double at(int64_t i) const {
    const double g = grid_point(mode, std::abs(end - start) + 1, samples, i);
    return end >= start ? start + g : start - g;
  }
};

/// Whether a position is inside the image, with some tolerance for rounding. NaN is outside.
bool inside(double at, int64_t size) {
  constexpr double kSlack = 1e-5;
  return at >= -kSlack && at <= static_cast<double>(size - 1) + kSlack;
}

Status crop_resize_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView& x = call.in("x");
  const TensorView& y = out[0];
  const BoxMode mode = MOKA_TRY(box_mode(call));
  const Sampling sampling = MOKA_TRY(sampling_of(call));
  const bool normalized = MOKA_TRY(call.flag("normalized_coordinates"));
  const double scale = MOKA_TRY(call.number("spatial_scale"));
  const double pad = call.version().param_index("pad_value") >= 0 ? MOKA_TRY(call.number("pad_value")) : 0.0;
  const bool boxes_apart = has_boxes(call);
  const TensorView& boxes = call.in(boxes_apart ? "boxes" : "roi");
  const TensorView* indices = boxes_apart && call.has("box_indices") ? &call.in("box_indices") : nullptr;
  const int64_t entries = boxes_apart ? 4 : boxes.shape[2], count = boxes.shape[0];
  const int64_t batch = x.shape[0], channels = x.shape[1], ih = x.shape[2], iw = x.shape[3];
  const int r = y.shape.rank();
  const int64_t oh = y.shape[r - 2], ow = y.shape[r - 1];
  const bool every_image = !boxes_apart && entries == 4;
  int64_t to = 0;
  return with_reader(x, [&](auto read) -> Status {
    for (int64_t n = 0; n < count; ++n) {
      const int64_t first = n * entries + (entries == 5 ? 1 : 0);
      double v[4];
      for (int64_t i = 0; i < 4; ++i) v[i] = load_f64(boxes, first + i) * scale;
      const int at_h = mode.height_first ? 0 : 1, at_w = 1 - at_h;
      double h0 = v[at_h], w0 = v[at_w], h1 = v[at_h + 2], w1 = v[at_w + 2];
      if (mode.center_size) {
        const double half_h = h1 / 2, half_w = w1 / 2;
        h1 = h0 + half_h;
        h0 -= half_h;
        w1 = w0 + half_w;
        w0 -= half_w;
      }
      if (normalized) {
        h0 *= static_cast<double>(ih - 1);
        h1 *= static_cast<double>(ih - 1);
        w0 *= static_cast<double>(iw - 1);
        w1 *= static_cast<double>(iw - 1);
      }
      const Side rows{h0, h1, ih, oh, sampling}, cols{w0, w1, iw, ow, sampling};
      int64_t image = 0, images = every_image ? batch : 1;
      if (!every_image) {
        const double index = entries == 5         ? load_f64(boxes, n * entries)
                             : indices != nullptr ? load_f64(*indices, n)
                                                  : static_cast<double>(n);
        if (!(index >= 0 && index < static_cast<double>(batch))) {
          return fail(ErrorCode::data, "operation '", call.name(), "' (crop_resize): box ", n, " is of image ", index,
                      ", expected 0 to ", batch - 1);
        }
        image = static_cast<int64_t>(index);
      }
      for (; images > 0; --images, ++image) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t plane = (image * channels + c) * ih * iw;
          for (int64_t i = 0; i < oh; ++i) {
            const double ph = rows.at(i);
            const Tap a = tap_at(ph, ih);
            for (int64_t j = 0; j < ow; ++j, ++to) {
              const double pw = cols.at(j);
              double value = pad;
              if (inside(ph, ih) && inside(pw, iw)) {
                const Tap b = tap_at(pw, iw);
                const int64_t top = plane + a.low * iw, bottom = plane + a.high * iw;
                value = mix(mix(read(top + b.low), read(top + b.high), b.part),
                            mix(read(bottom + b.low), read(bottom + b.high), b.part), a.part);
              }
              store_run(y, to, 1, 1, &value);
            }
          }
        }
      }
    }
    return {};
  });
}

}  // namespace

OpDef define_crop_resize() {
  return OpBuilder("crop_resize",
                   "Resizes boxes of images bilinearly to one size. Samples outside the image are pad_value (0 before "
                   "ios16).")
      .type_var("T", kF16F32)
      .in("x", "T")
      .in("roi", "T")
      .constant("target_height", kI32)
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
      .or_else(Tensor::text("DEFAULT"))
      .infer(infer_crop_resize)
      .reference(crop_resize_reference)
      .at(Opset::ios16,
          [](OpVersion& v) {
            ParamDef p;
            p.name = "pad_value";
            p.type_var = "T";
            p.constant = true;
            p.set_default(Tensor::scalar(DType::fp32, 0));
            v.params.push_back(std::move(p));
          })
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("BOX_T", any_of(DType::fp16, DType::fp32, DType::uint16));
            v.set_domain("BOX_INDEX_T", any_of(DType::uint16, DType::int32));
            ParamDef& boxes = v.edit("roi");
            boxes.name = "boxes";
            boxes.type_var = "BOX_T";
            ParamDef indices;
            indices.name = "box_indices";
            indices.type_var = "BOX_INDEX_T";
            indices.optional = true;
            v.params.insert(v.params.begin() + v.param_index("boxes") + 1, std::move(indices));
          })
      .note(
          "The extent for the sampling mode is |end - start| + 1. A box whose end is before its start is read "
          "backwards.",
          "coremltools' definition and tensorflow.image.crop_and_resize, which agrees for STRICT_ALIGN_CORNERS")
      .note(
          "normalized_coordinates multiplies by size - 1, after spatial_scale has multiplied. Samples outside of the "
          "image take pad_value.",
          "coremltools' definition")
      .note(
          "In roi with 5 entries the first is the image's number. Boxes without box_indices belong to the images in "
          "order. A number outside is an error.",
          "coremltools' definition")
      .build();
}

}  // namespace moka::ops
