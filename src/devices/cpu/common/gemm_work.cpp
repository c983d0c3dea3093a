#include "devices/cpu/common/gemm_work.h"

#include <algorithm>
#include <cmath>

namespace moka::devices::cpu {

namespace {

std::optional<ConstantProduct> of_linear(const MatchCall& m, std::string& refusal) {
  refusal = require_fp32(m, {"x", "weight", "bias"});
  if (refusal.empty() && !m.is_constant("weight")) refusal = "weights that are not constant";
  if (!refusal.empty()) return std::nullopt;
  const ir::Shape& w = m.call.shape("weight");
  ConstantProduct p;
  p.made = w[0];
  p.depth = w[1];
  p.row_step = 1;
  p.column_step = w[1];
  p.x = m.call.arg_index("x");
  p.weights = m.call.arg_index("weight");
  p.bias = m.call.arg_index("bias");
  return p;
}

std::optional<ConstantProduct> of_matmul(const MatchCall& m, std::string& refusal) {
  refusal = require_fp32(m, {"x", "y", "bias"});
  if (!refusal.empty()) return std::nullopt;
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  const ir::Shape& y = m.call.shape("y");
  if (!m.is_constant("y") || y.rank() != 2) refusal = "a y that is not a constant matrix";
  if (refusal.empty() && (!tx.ok() || !ty.ok() || *tx)) refusal = "a transposed x";
  if (!refusal.empty()) return std::nullopt;
  ConstantProduct p;
  p.made = y[*ty ? 0 : 1];
  p.depth = y[*ty ? 1 : 0];
  p.row_step = *ty ? 1 : y[1];
  p.column_step = *ty ? y[1] : 1;
  p.x = m.call.arg_index("x");
  p.weights = m.call.arg_index("y");
  p.bias = m.call.arg_index("bias");
  return p;
}

/// Writes the panels, then for each pair whether its columns are alike.
void pack(const ConstantProduct& p, const Panels& panels, const float* value, float* to) {
  const vector::Gemm& g = *panels.gemm;
  std::vector<float> squares(static_cast<size_t>(panels.pairs == 0 ? 0 : panels.floats(p) / p.depth));
  g.pack(value, p.row_step, p.column_step, p.depth, p.made, to, squares.empty() ? nullptr : squares.data());
  float* alike = to + panels.floats(p);
  for (int64_t pair = 0; pair < panels.pairs; pair++) {
    const float* left = squares.data() + 2 * pair * g.panel;
    alike[pair] = std::equal(left, left + g.panel, left + g.panel, are_alike) ? 1 : 0;
  }
}

}  // namespace

std::optional<ConstantProduct> constant_product(const MatchCall& m, std::string& refusal) {
  auto p = m.call.version().param_index("weight") >= 0 ? of_linear(m, refusal) : of_matmul(m, refusal);
  if (!p) return p;
  if (p->made == 0 || p->depth == 0) {
    refusal = "an empty tensor";
    return std::nullopt;
  }
  p->rows = m.outputs[0].shape().count() / p->made;
  p->addend = m.call.arg_index("addend");
  return p;
}

bool are_alike(float a, float b) {
  constexpr float kLike = 32;  // largest ratio of sizes
  return a <= kLargeSquares && b <= kLargeSquares && a <= b * (kLike * kLike) && b <= a * (kLike * kLike);
}

/// Costs are in multiply-adds. Threads may repeat the sums of rows, which the margin kSurely covers.
bool spares_products(const ConstantProduct& p, int64_t rows, int64_t pairs) {
  const auto depth = static_cast<double>(p.depth), columns = static_cast<double>(pairs * 2 * vector::gemm().panel),
             all = static_cast<double>(rows), blocks = std::ceil(all / kHalvedRows),
             parts = std::ceil(depth / 2 / kHalvedDepth);
  constexpr double kLeft = 17, kRight = 3, kJoin = 13, kSurely = 1.5;
  const double spent = kLeft * all * depth + kRight * blocks * depth * columns + kJoin * parts * all * columns;
  return kSurely * spent < all * depth * columns / 8;
}

Panels halved_panels(const ConstantProduct& p) { return {&vector::gemm(), p.made / vector::gemm().panel / 2}; }

Panels panels_of(const ConstantProduct& p) {
  const Panels halved = halved_panels(p);
  if (p.depth % 2 == 0 && p.depth >= 4 && spares_products(p, kHalvedRows, halved.pairs)) return halved;
  return {&vector::gemm_for(p.made), 0};
}

std::shared_ptr<const PackedFloats> packed_panels(KernelChoice& c, const MatchCall& m, const ConstantProduct& p,
                                                  const Panels& panels) {
  return packed_before(c, m, p.weights,
                       cat("panels of ", panels.gemm->panel, " in ", panels.gemm->lanes,
                           p.row_step == 1 ? ", transposed" : "", panels.pairs == 0 ? "" : ", which pairs are alike"),
                       panels.floats(p) + panels.pairs,
                       [=](const float* value, float* to) { pack(p, panels, value, to); });
}

}  // namespace moka::devices::cpu
