// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/image_point.h"
#include "ops/common/ranks.h"
#include "ops/common/resampling.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_resample(const OpCall& call) {
  MOKA_TRY(resample_settings_of(call));
  const DType dtype = call.dtype("x");
  if (any_unranked(call, {"x", "coordinates"})) return one(Type::unranked(dtype));
  const Shape& x = call.shape("x");
  const Shape& at = call.shape("coordinates");
  if (x.rank() != 4) return call.error("x", "rank 4", cat(x));
  if (x[2] == 0 || x[3] == 0) return call.error("x", "at least one row and one column", cat(x));
  if (at.rank() != 4 || !may_equal(at[3], 2) || !may_equal(at[0], x[0])) {
    return call.error("coordinates", cat("shape [", x[0], ", height, width, 2]"), cat(at));
  }
  return one(Type::tensor(dtype, {known_of(x[0], at[0]), x[1], at[1], at[2]}));
}

Status resample_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const ResampleSettings s = MOKA_TRY(resample_settings_of(call));
  const TensorView& x = call.in("x");
  const TensorView& at = call.in("coordinates");
  const TensorView& y = out[0];
  const int64_t batch = x.shape[0], channels = x.shape[1], ih = x.shape[2], iw = x.shape[3];
  const int64_t area = y.shape[2] * y.shape[3];
  with_reader(x, [&](auto read) {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t o = 0; o < area; ++o) {
        const double px = resample_position(s, load_f64(at, (b * area + o) * 2), iw);
        const double py = resample_position(s, load_f64(at, (b * area + o) * 2 + 1), ih);
        const double nx = std::nearbyint(px), ny = std::nearbyint(py);
        const bool hit = nx >= 0 && ny >= 0 && nx < static_cast<double>(iw) && ny < static_cast<double>(ih);
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t plane = b * channels + c, base = plane * ih * iw;
          const double value = s.bilinear ? bilinear_or(read, base, ih, iw, py, px, s.pad)
                               : hit      ? read(base + static_cast<int64_t>(ny) * iw + static_cast<int64_t>(nx))
                                          : s.pad;
          store_run(y, plane * area + o, 1, 1, &value);
        }
      }
    }
    return 0;
  });
  return {};
}

void resample_gradient(Gradient& g) {
  Term coordinates{g, g.op().input("coordinates")};
  if (!is_float(coordinates.value()->type.dtype())) coordinates = g.cast(coordinates, DType::fp32);
  std::vector<NamedArg> args{{"x", g.x().value()},
                             {"coordinates", coordinates.value()},
                             {"dy", g.dy().value()},
                             {"padding_value", g.scalar(g.number("padding_value"))},
                             {"align_corners", g.flag("align_corners")}};
  for (const char* p : {"sampling_mode", "padding_mode", "coordinates_mode"})
    args.emplace_back(p, std::string(g.text(p)));
  const std::vector<Term> made = g.call_all("moka_resample_gradient", std::move(args), 2);
  g.set("x", made[0]);
  g.set("coordinates", made[1]);
}

}  // namespace

OpDef define_resample() {
  OpBuilder b("resample",
              "Samples images at given (x, y) positions; outside, the image is padded with a value, its border, or its "
              "reflection without (reflection) or with (symmetric) the border.");
  b.type_var("T", kF16F32).type_var("U", any_of(DType::int32, DType::fp32)).in("x", "T").in("coordinates", "U");
  return resample_params(b)
      .infer(infer_resample)
      .reference(resample_reference)
      .traits(Trait::costly)
      .gradient(resample_gradient)
      .at(Opset::ios16, [](OpVersion& v) { v.set_domain("U", any_of(DType::int32, DType::fp16, DType::fp32)); })
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("U", any_of(DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::fp16,
                                     DType::fp32));
          })
      .note(
          "Coordinates are (x, y). align_corners tells whether the extremes are centers or edges of the outermost "
          "pixels. Unnormalized coordinates are pixel indices.",
          "coremltools' definition")
      .note("nearest rounds halves to even.", "torch.nn.functional.grid_sample")
      .note(
          "reflection mirrors at the outermost centers, symmetric at the outermost edges. Both repeat as often as "
          "needed.",
          "coremltools' definition; torch.nn.functional.grid_sample with align_corners true and false")
      .note(
          "constant pads each of the four neighbors. NaN coordinates read the padding with constant, else the first "
          "element.",
          "torch.nn.functional.grid_sample, which gives NaN for NaN with constant and bilinear")
      .build();
}

}  // namespace moka::ops
