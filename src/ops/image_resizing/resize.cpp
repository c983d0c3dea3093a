// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

Result<bool> is_linear(const OpCall& call) {
  const std::string_view text = MOKA_TRY(call.text("interpolation_mode"));
  if (text == "LINEAR") return true;
  if (text == "NEAREST_NEIGHBOR") return false;
  return call.error("interpolation_mode", "LINEAR or NEAREST_NEIGHBOR", cat("'", text, "'"));
}

Result<std::vector<Type>> infer_resize(const OpCall& call) {
  MOKA_TRY(is_linear(call));
  MOKA_TRY(sampling_of(call));
  const int64_t resized = MOKA_TRY(call.integer("resized_dims"));
  const DType dtype = call.dtype("x");
  if (any_unranked(call, {"x"})) return one(Type::unranked(dtype));
  Shape out = call.shape("x");
  if (resized < 0 || resized > out.rank())
    return call.error("resized_dims", cat("0 to ", out.rank(), ", the rank of x"), cat(resized));
  const int from = out.rank() - static_cast<int>(resized);
  if (any_unranked(call, {"shape"})) {
    for (int i = from; i < out.rank(); ++i) out[i] = kAnyDim;
    return one(Type::tensor(dtype, out));
  }
  const Shape& list = call.shape("shape");
  if (list.rank() != 1) return call.error("shape", "rank 1", cat(list));
  if (list[0] >= 0 && (list[0] < resized || list[0] > out.rank())) {
    return call.error("shape", cat(resized, " to ", out.rank(), " sizes"), cat(list[0]));
  }
  const TensorView* sizes = call.value("shape");
  for (int i = from; i < out.rank(); ++i) {
    if (sizes == nullptr) {
      out[i] = kAnyDim;
      continue;
    }
    const int64_t size = load_i64(*sizes, sizes->count() - (out.rank() - i));
    if (size < 0) return call.error("shape", "sizes of 0 (as in x) or more", cat(size));
    if (size == 0) continue;
    if (out[i] == 0) return call.error("x", "at least one element along every resized dimension", cat(call.shape("x")));
    out[i] = size;
  }
  return one(Type::tensor(dtype, out));
}

struct Grid {
  int rank = 0, from = 0;  // dimensions [from, rank) are resized
  std::array<int64_t, kMaxRank> in{}, out{}, step{};
  Sampling mode = Sampling::default_;
};

/// Interpolates over the dimensions from `d` on at the output index `at`.
template <class Read>
double interpolate(const Grid& g, const std::array<int64_t, kMaxRank>& at, int d, int64_t offset, const Read& read) {
  if (d == g.rank) return read(offset);
  const auto i = static_cast<size_t>(d);
  const Tap t = tap_at(grid_point(g.mode, static_cast<double>(g.in[i]), g.out[i], at[i]), g.in[i]);
  const double low = interpolate(g, at, d + 1, offset + t.low * g.step[i], read);
  if (t.part == 0) return low;
  return low * (1 - t.part) + interpolate(g, at, d + 1, offset + t.high * g.step[i], read) * t.part;
}

/// The nearest integer if rounding errors alone separate `v` from it, since truncating `v` could give the integer
/// below; else `v`. `size` is the interpolated magnitude.
double whole_if_near(double v, double size) {
  const double whole = std::round(v);
  return std::abs(v - whole) <= 1e-11 * std::max(1.0, size) ? whole : v;
}

int64_t nearest(const Grid& g, size_t i, int64_t at) {
  if (g.mode == Sampling::default_) return nearest_half_pixel(g.in[i], g.out[i], at);
  return nearest_at(grid_point(g.mode, static_cast<double>(g.in[i]), g.out[i], at), g.in[i]);
}

Status resize_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView& x = call.in("x");
  const TensorView& y = out[0];
  const bool linear = MOKA_TRY(is_linear(call));
  Grid g;
  g.mode = MOKA_TRY(sampling_of(call));
  g.rank = x.shape.rank();
  g.from = g.rank - static_cast<int>(MOKA_TRY(call.integer("resized_dims")));
  const auto strides = x.shape.strides();
  for (int i = 0; i < g.rank; ++i) {
    const auto k = static_cast<size_t>(i);
    g.in[k] = x.shape[i];
    g.out[k] = y.shape[i];
    g.step[k] = strides[k];
  }
  const int64_t planes = x.shape.count(0, g.from), in_plane = x.shape.count(g.from, g.rank),
                out_plane = y.shape.count(g.from, g.rank);
  with_reader(x, [&](auto read) {
    std::array<int64_t, kMaxRank> at{};
    for (int64_t o = 0; o < out_plane; ++o) {
      int64_t rest = o;
      for (int i = g.rank - 1; i >= g.from; --i) {
        at[static_cast<size_t>(i)] = rest % y.shape[i];
        rest /= y.shape[i];
      }
      if (linear) {
        for (int64_t p = 0; p < planes; ++p) {
          double v = interpolate(g, at, g.from, p * in_plane, read);
          if (!is_float(y.dtype)) {
            const auto size = [&](int64_t from) { return std::abs(static_cast<double>(read(from))); };
            v = whole_if_near(v, interpolate(g, at, g.from, p * in_plane, size));
          }
          store_run(y, p * out_plane + o, 1, 1, &v);
        }
      } else {
        int64_t offset = 0;
        for (int i = g.from; i < g.rank; ++i) {
          const auto k = static_cast<size_t>(i);
          offset += nearest(g, k, at[k]) * g.step[k];
        }
        for (int64_t p = 0; p < planes; ++p) copy_element(y, p * out_plane + o, x, p * in_plane + offset);
      }
    }
    return 0;
  });
  return {};
}

/// Each resized axis is a product with a matrix.
void resize_gradient_along_axes(Gradient& g) {
  const bool linear = g.take(is_linear(g.known()));
  const Sampling mode = g.take(sampling_of(g.known()));
  const Shape &x = g.x().shape(), &y = g.y().shape();
  if (y.count() == 0) return g.set("x", g.fill(x, 0));
  Term dy = g.dy();
  for (int i = x.rank() - static_cast<int>(g.integer("resized_dims")); i < x.rank() && !g.has_failed(); i++) {
    const auto k = static_cast<size_t>(i);
    Grid grid;
    grid.mode = mode;
    grid.in[k] = x[i];
    grid.out[k] = y[i];
    Tensor matrix = g.take(Tensor::zeros(g.y().value()->type.dtype(), {x[i], y[i]}));
    const auto add = [&](int64_t from, int64_t to, double part) {
      store_f64(matrix.view(), from * y[i] + to, load_f64(matrix.view(), from * y[i] + to) + part);
    };
    for (int64_t to = 0; to < y[i] && !g.has_failed(); to++) {
      const Tap t = tap_at(grid_point(mode, static_cast<double>(x[i]), y[i], to), x[i]);
      if (!linear) add(nearest(grid, k, to), to, 1);
      if (linear) add(t.low, to, 1 - t.part);
      if (linear && t.part != 0) add(t.high, to, t.part);
    }
    const Term rows = g.reshape(dy, {x.count(0, i), y[i], y.count(i + 1, y.rank())});
    dy = g.call("matmul", {{"x", matrix}, {"y", rows.value()}});
  }
  g.set("x", g.reshape(dy, x));
}

}  // namespace

OpDef define_resize() {
  OpBuilder b("resize",
              "Resizes the last `resized_dims` dimensions to the last entries of `shape` (0: as in x), linearly along "
              "each dimension or by the nearest element.",
              Opset::ios17);
  b.type_var("T", any_of(DType::fp16, DType::fp32, DType::int32))
      .type_var("U", any_of(DType::int32, DType::int16, DType::uint16, DType::uint32))
      .in("x", "T")
      .in("shape", "U")
      .constant("resized_dims", only(DType::uint32))
      .constant("interpolation_mode", kString)
      .one_of({"LINEAR", "NEAREST_NEIGHBOR"})
      .or_else(Tensor::text("LINEAR"));
  return sampling_mode(b)
      .infer(infer_resize)
      .reference(resize_reference)
      .gradient(resize_gradient_along_axes)
      .note(kGridNote.text, kGridNote.evidence)
      .note(
          "NEAREST_NEIGHBOR with DEFAULT reads floor((i + 0.5) * in / out). Other modes read the nearest grid point; "
          "halves go up.",
          "coremltools' iOS17 test_resize_nearest_neighbor")
      .note("0 in shape keeps the dimension of x at the same distance from the end.",
            "coremltools' iOS17 test_resize_inherit_shape")
      .build();
}

}  // namespace moka::ops
