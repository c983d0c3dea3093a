// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "compiler/onnx/call.h"
#include "ops/common/sampling.h"

namespace moka::compiler::onnx {
namespace {

using ops::Sampling;

/// Resizes the dimensions of x from `first` on to those of `out`.
struct Grid {
  ir::Shape in, out;
  int first = 0;
  bool is_known() const { return in.is_concrete() && out.is_concrete(); }
};

Grid grid_of(Call& c, int first) {
  Grid g;
  if (!c.type("x").is_ranked() || !c.out().is_ranked()) return c.refuse("the rank of x is not known"), g;
  g.in = c.type("x").shape();
  g.out = c.out().shape();
  g.first = first < 0 ? g.in.rank() + first : first;
  return g;
}

/// The coordinates of ONNX's Resize that give the same positions; nullptr: none does.
const char* coordinates(Sampling s, const Grid& g) {
  switch (s) {
    case Sampling::default_: return "asymmetric";
    case Sampling::unalign_corners: return "half_pixel";
    case Sampling::strict_align_corners: return "align_corners";
    case Sampling::align_corners: {
      for (int i = g.first; i < g.in.rank(); i++)
        if (g.out[i] == 1 || g.out[i] < 0) return nullptr;
      return "align_corners";
    }
    case Sampling::offset_corners: return nullptr;
  }
  return nullptr;
}

/// The sizes as Resize takes them.
Name sizes(Call& c, const Grid& g) { return c.i64(g.out.to_vector()); }

/// Interpolates along one axis by a matrix product with interpolation weights, which is exact for every sampling.
Name by_weights(Call& c, Name x, const Grid& g, Sampling s) {
  const DType t = c.dtype("x");
  const int rank = g.in.rank();
  for (int d = g.first; d < rank; d++) {
    const int64_t n = g.in[d], m = g.out[d];
    ir::Tensor w = c.take(ir::Tensor::zeros(t, {n, m}));
    if (c.refused()) return {};
    bool same = n == m;
    for (int64_t i = 0; i < m; i++) {
      const ops::Tap tap = ops::tap_at(ops::grid_point(s, static_cast<double>(n), m, i), n);
      same &= tap.low == i && tap.part == 0;
      ir::store_f64(w.view(), tap.low * m + i, 1 - tap.part);
      if (tap.part != 0) ir::store_f64(w.view(), tap.high * m + i, tap.part);
    }
    if (same) continue;
    std::vector<int64_t> perm;
    for (int i = 0; i < rank; i++)
      if (i != d) perm.push_back(i);
    perm.push_back(d);
    std::vector<int64_t> back(static_cast<size_t>(rank));
    for (size_t i = 0; i < perm.size(); i++) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    x = c.transpose(c.node("MatMul", {c.transpose(x, perm), c.graph.tensor(w)}), back);
  }
  return x;
}

void linear(Call& c, const Grid& g, Sampling s) {
  if (c.refused()) return;
  if (!g.is_known()) return c.refuse("the sizes of its result are not known");
  if (g.in == g.out && s != Sampling::offset_corners) return c.set(c.x());
  const char* mode = coordinates(s, g);
  if (mode == nullptr || g.in.rank() - g.first > 2) return c.set(by_weights(c, c.x(), g, s));
  c.set(c.node("Resize", {c.x(), Name(), Name(), sizes(c, g)},
               {attr("mode", "linear"), attr("coordinate_transformation_mode", mode)}));
}

/// Becomes a Resize if every output size is a multiple of the input size and the positions are those of ONNX. Otherwise
/// a Gather with constant indices picks the elements, so no runtime rounds a position.
template <class Index>
void nearest(Call& c, const Grid& g, Index index) {
  if (c.refused()) return;
  if (!g.is_known()) return c.refuse("the sizes of its result are not known");
  bool whole = true;
  for (int d = g.first; d < g.in.rank(); d++) {
    whole &= g.in[d] > 0 && g.out[d] % g.in[d] == 0;
    for (int64_t i = 0; whole && i < g.out[d]; i++) whole &= index(g.in[d], g.out[d], i) == i * g.in[d] / g.out[d];
  }
  if (g.in == g.out && whole) return c.set(c.x());
  if (whole) {
    return c.set(c.node("Resize", {c.x(), Name(), Name(), sizes(c, g)},
                        {attr("mode", "nearest"), attr("coordinate_transformation_mode", "asymmetric"),
                         attr("nearest_mode", "floor")}));
  }
  Name x = c.x();
  for (int d = g.first; d < g.in.rank(); d++) {
    std::vector<int64_t> at;
    for (int64_t i = 0; i < g.out[d]; i++) at.push_back(index(g.in[d], g.out[d], i));
    x = c.node("Gather", {x, c.i64(at)}, {attr("axis", d)});
  }
  c.set(x);
}

void resize_bilinear(Call& c) { linear(c, grid_of(c, -2), c.take(ops::sampling_of(c.known()), Sampling::default_)); }
void upsample_bilinear(Call& c) {
  const Sampling s = c.take(ops::upsampling_of(c.known()), Sampling::default_);
  Grid g = grid_of(c, -2);
  if (!c.refused() && !g.is_known()) {
    // Resize gets the exact factors and derives the sizes from them.
    const char* mode = coordinates(s, g);
    ir::Tensor scales = c.take(ir::Tensor::uninitialized(DType::fp32, {g.in.rank()}));
    if (c.refused() || mode == nullptr) return c.refuse("the sizes of its result are not known");
    for (int i = 0; i < g.in.rank(); i++) scales.mut<float>()[static_cast<size_t>(i)] = 1;
    const auto rank = static_cast<size_t>(g.in.rank());
    scales.mut<float>()[rank - 2] = static_cast<float>(c.number("scale_factor_height"));
    scales.mut<float>()[rank - 1] = static_cast<float>(c.number("scale_factor_width"));
    return c.set(c.node("Resize", {c.x(), Name(), c.graph.tensor(scales)},
                        {attr("mode", "linear"), attr("coordinate_transformation_mode", mode)}));
  }
  linear(c, g, s);
}

void resize_nearest(Call& c) { nearest(c, grid_of(c, -2), ops::nearest_half_pixel); }

void upsample_nearest(Call& c) {
  Grid g = grid_of(c, -2);
  if (!c.refused() && !g.is_known()) {
    ir::Tensor scales = c.take(ir::Tensor::uninitialized(DType::fp32, {g.in.rank()}));
    if (c.refused()) return;
    for (int i = 0; i < g.in.rank(); i++) scales.mut<float>()[static_cast<size_t>(i)] = 1;
    const auto rank = static_cast<size_t>(g.in.rank());
    const double h = c.number("scale_factor_height"), w = c.number("scale_factor_width");
    if (h != static_cast<double>(static_cast<int64_t>(h)) || w != static_cast<double>(static_cast<int64_t>(w)))
      return c.refuse("the sizes of its result are not known");
    scales.mut<float>()[rank - 2] = static_cast<float>(h);
    scales.mut<float>()[rank - 1] = static_cast<float>(w);
    return c.set(c.node("Resize", {c.x(), Name(), c.graph.tensor(scales)},
                        {attr("mode", "nearest"), attr("coordinate_transformation_mode", "asymmetric"),
                         attr("nearest_mode", "floor")}));
  }
  nearest(c, g, ops::nearest_top_left);
}

void resize(Call& c) {
  const Sampling s = c.take(ops::sampling_of(c.known()), Sampling::default_);
  const int count = static_cast<int>(c.integer("resized_dims"));
  if (count == 0) return c.set(c.x());
  const Grid g = grid_of(c, -count);
  if (c.text("interpolation_mode") == "LINEAR") return linear(c, g, s);
  if (s == Sampling::default_) return nearest(c, g, ops::nearest_half_pixel);
  nearest(c, g, [s](int64_t in, int64_t out, int64_t i) {
    return ops::nearest_at(ops::grid_point(s, static_cast<double>(in), out, i), in);
  });
}

}  // namespace

std::span<const OpWriter> writers_resize();
std::span<const OpWriter> writers_resize() {
  static constexpr OpWriter list[] = {
      {"resize_bilinear", resize_bilinear},
      {"upsample_bilinear", upsample_bilinear},
      {"resize_nearest_neighbor", resize_nearest},
      {"upsample_nearest_neighbor", upsample_nearest},
      {"resize", resize},
  };
  return list;
}

}  // namespace moka::compiler::onnx
