// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/image_point.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Result<std::vector<Type>> infer_affine(const OpCall& call) {
  struct Only {
    const char* param;
    const char* value;
  };
  for (const Only& o : {Only{"sampling_mode", "bilinear"}, Only{"padding_mode", "constant"},
                        Only{"coordinates_mode", "normalized_minus_one_to_one"}}) {
    const std::string_view text = MOKA_TRY(call.text(o.param));
    if (lower(text) != o.value) return call.error(o.param, o.value, cat("'", text, "'"));
  }
  const double pad = MOKA_TRY(call.number("padding_value"));
  if (pad != 0) return call.error("padding_value", "0", cat(pad));
  MOKA_TRY(call.flag("align_corners"));
  const int64_t height = MOKA_TRY(call.integer("output_height")), width = MOKA_TRY(call.integer("output_width"));
  if (height < 1) return call.error("output_height", "1 or more", cat(height));
  if (width < 1) return call.error("output_width", "1 or more", cat(width));
  const DType dtype = call.dtype("x");
  if (any_unranked(call, {"x"})) return one(Type::unranked(dtype));
  const Shape& x = call.shape("x");
  if (x.rank() != 4) return call.error("x", "rank 4", cat(x));
  if (!any_unranked(call, {"transform_matrix"})) {
    const Shape& m = call.shape("transform_matrix");
    if (m.rank() != 2 || !may_equal(m[1], 6) || (m[0] != 1 && !may_equal(m[0], x[0]))) {
      return call.error("transform_matrix", cat("shape [1, 6] or [", x[0], ", 6]"), cat(m));
    }
  }
  return one(Type::tensor(dtype, {x[0], x[1], height, width}));
}

/// Converts between pixels and coordinates from -1 to 1. With align_corners, -1 and 1 are the centers of the outermost
/// pixels, otherwise their outer edges.
double to_pixel(double v, int64_t n, bool align) {
  const auto size = static_cast<double>(n);
  return align ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
}
double from_pixel(int64_t i, int64_t n, bool align) {
  const auto at = static_cast<double>(i), size = static_cast<double>(n);
  if (align) return n > 1 ? 2 * at / (size - 1) - 1 : 0;
  return (2 * at + 1) / size - 1;
}

Status affine_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView& x = call.in("x");
  const TensorView& y = out[0];
  const TensorView& matrix = call.in("transform_matrix");
  const bool align = MOKA_TRY(call.flag("align_corners"));
  const int64_t batch = x.shape[0], channels = x.shape[1], ih = x.shape[2], iw = x.shape[3], oh = y.shape[2],
                ow = y.shape[3];
  with_reader(x, [&](auto read) {
    for (int64_t b = 0; b < batch; ++b) {
      double m[6];
      load_run(matrix, matrix.shape[0] == 1 ? 0 : b * 6, 1, 6, m);
      for (int64_t i = 0; i < oh; ++i) {
        const double v = from_pixel(i, oh, align);
        for (int64_t j = 0; j < ow; ++j) {
          const double u = from_pixel(j, ow, align);
          const double px = to_pixel(m[0] * u + m[1] * v + m[2], iw, align);
          const double py = to_pixel(m[3] * u + m[4] * v + m[5], ih, align);
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t plane = b * channels + c;
            const double value = bilinear_or(read, plane * ih * iw, ih, iw, py, px, 0.0);
            store_run(y, (plane * oh + i) * ow + j, 1, 1, &value);
          }
        }
      }
    }
    return 0;
  });
  return {};
}

/// The positions are products of the matrices with (u, v, 1).
void affine_gradient(Gradient& g) {
  const Shape& y = g.y().shape();
  const int64_t batch = y[0], height = y[2], width = y[3], area = height * width;
  const bool align = g.flag("align_corners");
  if (y.count() == 0) return g.set("x", g.fill(g.x().shape(), 0));
  Tensor places = g.take(Tensor::zeros(g.y().value()->type.dtype(), {area, 3}));
  for (int64_t i = 0; i < area && !g.has_failed(); ++i) {
    store_f64(places.view(), 3 * i, from_pixel(i % width, width, align));
    store_f64(places.view(), 3 * i + 1, from_pixel(i / width, height, align));
    store_f64(places.view(), 3 * i + 2, 1);
  }
  const Term given = g.in("transform_matrix");
  const int64_t matrices = given.shape()[0];
  const Term matrix = g.to_shape(g.reshape(given, {matrices, 2, 3}), {batch, 2, 3});
  const Term at = g.call("matmul", {{"x", places}, {"y", matrix.value()}, {"transpose_y", true}});
  const std::vector<Term> made = g.call_all("moka_resample_gradient",
                                            {{"x", g.x().value()},
                                             {"coordinates", g.reshape(at, {batch, height, width, 2}).value()},
                                             {"dy", g.dy().value()},
                                             {"sampling_mode", "bilinear"},
                                             {"padding_mode", "constant"},
                                             {"padding_value", g.scalar(0)},
                                             {"coordinates_mode", "normalized_minus_one_to_one"},
                                             {"align_corners", align}},
                                            2);
  g.set("x", made[0]);
  if (!g.wants("transform_matrix") || g.has_failed()) return;
  const Term d = g.reshape(made[1], {batch, area, 2});
  const Term sums = g.call("matmul", {{"x", d.value()}, {"y", places}, {"transpose_x", true}});
  g.set("transform_matrix", g.reshape(sums, {batch, 6}));
}

}  // namespace

OpDef define_affine() {
  return OpBuilder("affine",
                   "Samples images at affinely transformed positions: rows [a0, a1, a2, b0, b1, b2] give x' = a0 x + "
                   "a1 y + a2 "
                   "and y' = b0 x + b1 y + b2 in coordinates from -1 to 1; zero outside.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .in("transform_matrix", "T")
      .constant("output_height", kI32)
      .constant("output_width", kI32)
      .constant("sampling_mode", kString)
      .constant("padding_mode", kString)
      .constant("padding_value", "T")
      .constant("coordinates_mode", kString)
      .constant("align_corners", kBool)
      .infer(infer_affine)
      .reference(affine_reference)
      .gradient(affine_gradient)
      .note(
          "sampling_mode bilinear, padding_mode constant, padding_value 0 and coordinates_mode "
          "normalized_minus_one_to_one are the only values that are accepted, in upper or lower case.",
          "coremltools' definition and checks")
      .note("With align_corners -1 and 1 are the centers of the outermost pixels, else their edges.",
            "torch.nn.functional.affine_grid and grid_sample")
      .build();
}

}  // namespace moka::ops
