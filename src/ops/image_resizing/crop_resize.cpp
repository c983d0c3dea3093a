// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/boxes.h"
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

/// iOS17 introduced boxes [N, 4] and box_indices [N]; earlier versions have roi [N, 1, 4 or 5, 1, 1].
bool has_boxes(const OpCall& call) { return call.version().since >= Opset::ios17; }

Result<std::vector<Type>> infer_crop_resize(const OpCall& call) {
  const bool normalized = MOKA_TRY(box_settings_of(call)).normalized;
  MOKA_TRY(check_box_sizes(call));
  const int64_t height = MOKA_TRY(call.integer("target_height")), width = MOKA_TRY(call.integer("target_width"));
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

Status crop_resize_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView& x = call.in("x");
  const TensorView& y = out[0];
  const BoxSettings settings = MOKA_TRY(box_settings_of(call));
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
      const auto [rows, cols] = box_sides(settings, boxes, first, x.shape, y.shape);
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
              if (rows.contains(ph) && cols.contains(pw)) {
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

/// Boxes as iOS17 has them, each of one image: where all boxes are of all images, each box is there once for each.
void crop_resize_gradient(Gradient& g) {
  if (g.y().shape().count() == 0) return g.set("x", g.fill(g.x().shape(), 0));
  const Shape& y = g.y().shape();
  const int64_t height = y[y.rank() - 2], width = y[y.rank() - 1], channels = y[y.rank() - 3],
                count = y.count(0, y.rank() - 3), images = g.x().shape()[0];
  const auto numbered = [&](int64_t divisor) {
    return g.call("identity", {{"x", int32s(g, {count}, [&](int64_t i) { return i % divisor; })}});
  };
  Term boxes = g.x(), indices = g.x();
  if (has_boxes(g.known())) {
    boxes = {g, g.op().input("boxes")};
    indices = g.has("box_indices") ? g.cast({g, g.op().input("box_indices")}, DType::int32) : numbered(count);
  } else {
    const Term roi = {g, g.op().input("roi")};
    const int64_t n = roi.shape()[0], entries = roi.shape()[2];
    const Term rows = g.reshape(roi, {n, 1, entries});
    if (entries == 5) {
      boxes = g.call("slice_by_index", {{"x", rows.value()}, {"begin", Ints{0, 0, 1}}, {"end", Ints{n, 1, 5}}});
      const Term first =
          g.call("slice_by_index", {{"x", rows.value()}, {"begin", Ints{0, 0, 0}}, {"end", Ints{n, 1, 1}}});
      indices = g.reshape(g.cast(first, DType::int32), {count});
    } else {
      boxes = g.call("tile", {{"x", rows.value()}, {"reps", Ints{1, images, 1}}});
      indices = numbered(images);
    }
    boxes = g.reshape(boxes, {count, 4});
  }
  std::vector<NamedArg> args{{"x", g.x().value()},
                             {"boxes", boxes.value()},
                             {"box_indices", indices.value()},
                             {"dy", g.reshape(g.dy(), {count, channels, height, width}).value()},
                             {"target_height", static_cast<int>(height)},
                             {"target_width", static_cast<int>(width)},
                             {"normalized_coordinates", g.flag("normalized_coordinates")},
                             {"spatial_scale", static_cast<float>(g.number("spatial_scale"))}};
  for (const char* p : {"box_coordinate_mode", "sampling_mode"}) args.emplace_back(p, std::string(g.text(p)));
  g.set("x", g.call("moka_crop_resize_gradient", std::move(args)));
}

}  // namespace

OpDef define_crop_resize() {
  OpBuilder b("crop_resize",
              "Resizes boxes of images bilinearly to one size. Samples outside the image are pad_value (0 before "
              "ios16).");
  b.type_var("T", kF16F32).in("x", "T").in("roi", "T");
  return box_params(b)
      .infer(infer_crop_resize)
      .reference(crop_resize_reference)
      .gradient(crop_resize_gradient)
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
