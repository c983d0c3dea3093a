// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/gemm_work.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "devices/cpu/common/half_weights.h"

namespace moka::devices::cpu {

namespace {

constexpr int64_t kMostUnpacked = 1 << 18;  // floats of a panel that is packed while running
constexpr int64_t kWidestPanel = 48;        // columns of any panel

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

bool pair_is_alike(const float* squares, int64_t panel) {
  return std::equal(squares, squares + panel, squares + panel, are_alike);
}

/// Writes for each pair of panels whether their columns are alike. `squares`: the sum of squares of each column.
void write_alike(const Panels& panels, const std::vector<float>& squares, float* alike) {
  const int64_t panel = panels.gemm->panel;
  for (int64_t pair = 0; pair < panels.pairs; pair++)
    alike[pair] = pair_is_alike(squares.data() + 2 * pair * panel, panel) ? 1 : 0;
}

void pack(const ConstantProduct& p, const Panels& panels, const float* value, float* to, std::vector<float>& squares) {
  panels.gemm->pack(value, p.row_step, p.column_step, p.depth, p.made, to, squares.empty() ? nullptr : squares.data());
}

/// How many columns are widened at once: whole panels that fit part of the L2 cache.
int64_t widened_columns(const Panels& panels, int64_t depth) {
  constexpr int64_t kFits = 512 << 10, kMost = 192;
  const int64_t panel = panels.gemm->panel;
  return std::clamp(kFits / static_cast<int64_t>(sizeof(float)) / depth, panel, kMost) / panel * panel;
}

/// Packs the numbers that `load(first, n, to)` widens. They stay in the cache between the file and the panels.
void pack_halves(const ConstantProduct& p, const Panels& panels, const LoadValues& load, uint16_t* to,
                 std::vector<float>& squares) {
  constexpr int64_t kRowsAtOnce = 32;
  const vector::Gemm& g = *panels.gemm;
  const bool by_column = p.row_step == 1;
  const int64_t deep = by_column ? p.depth : std::min(p.depth, kRowsAtOnce);
  std::vector<float> loaded(static_cast<size_t>(deep * (by_column ? g.panel : p.made))),
      packed(static_cast<size_t>(deep * g.panel)), sums(static_cast<size_t>(g.panel));
  for (int64_t k = 0, some; k < p.depth; k += some) {
    some = std::min(deep, p.depth - k);
    if (!by_column) load(k * p.row_step, some * p.made, loaded.data());
    for (int64_t j = 0; j < p.made; j += g.panel) {
      const int64_t wide = std::min(g.panel, p.made - j), padded = (wide + g.lanes - 1) / g.lanes * g.lanes;
      if (by_column) load(j * p.column_step, wide * p.depth, loaded.data());
      g.pack(by_column ? loaded.data() : loaded.data() + j, p.row_step, p.column_step, some, wide, packed.data(),
             squares.empty() ? nullptr : sums.data());
      float_to_half(packed.data(), to + j * p.depth + k * padded, static_cast<size_t>(some * padded));
      for (int64_t i = 0; i < padded && !squares.empty(); i++)
        squares[static_cast<size_t>(j + i)] += sums[static_cast<size_t>(i)];
    }
  }
}

void pack_compressed(const ConstantProduct& p, const Panels& panels, CompressedWeights::Packer& packer,
                     std::vector<float>& squares) {
  const vector::Gemm& g = *panels.gemm;
  std::vector<float> values(static_cast<size_t>(g.panel * p.depth)), made(values.size());
  for (int64_t j = 0; j < p.made; j += g.panel) {
    const int64_t wide = std::min(g.panel, p.made - j), width = (wide + g.lanes - 1) / g.lanes * g.lanes;
    const auto pack = [&](const float* from, int64_t depth, float* at) {
      g.pack_panel(from, depth, depth, wide, width, at, nullptr);
    };
    packer.pack(j, wide, width, pack);
    if (squares.empty()) continue;
    packer.values(j * p.depth, wide * p.depth, values.data());
    g.pack_panel(values.data(), p.depth, p.depth, wide, width, made.data(), squares.data() + j);
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

Panels halved_panels(const MatchCall& m, const ConstantProduct& p) {
  auto compressed = p.row_step == 1
                        ? CompressedWeights::of(m, p.weights, p.made, p.depth, CompressedWeights::Precision::wide)
                        : nullptr;
  return {&vector::gemm(), compressed == nullptr && stores_halves(m, p.weights), p.made / vector::gemm().panel / 2,
          std::move(compressed)};
}

Panels panels_of(const MatchCall& m, const ConstantProduct& p) {
  const Panels halved = halved_panels(m, p);
  if (p.depth % 2 == 0 && p.depth >= 4 && spares_products(p, kHalvedRows, halved.pairs)) return halved;
  return {&vector::gemm_for(p.made), halved.as_half, 0, halved.compressed};
}

int64_t PackedPanels::scratch_floats() const {
  const int64_t panel = panels.gemm->panel * depth;
  if (panels.compressed) return widened_columns(panels, depth) * depth;
  return std::max(panels.scratch_floats(), unpacked ? panel + unpacked->room(panel) : 0);
}

void PackedPanels::pack_panel(int64_t column, int64_t wide, float* to, float* squares, float* room) const {
  const float* from = is_by_column() ? unpacked->read(column * depth, wide * depth, room) : unpacked->floats() + column;
  panels.gemm->pack(from, product.row_step, product.column_step, depth, wide, to, squares);
}

PanelPair PackedPanels::pair(int64_t pair, float* room) const {
  const int64_t panel = panels.gemm->panel, column = 2 * pair * panel;
  if (const std::byte* packed = bytes.get(); packed != nullptr) {
    const bool alike_columns = reinterpret_cast<const float*>(packed + alike)[pair] != 0;
    for (int64_t i = 0; i < 2 && panels.compressed; i++)
      panels.compressed->widen(packed, column + i * panel, panel, panels.padded(product), 0, depth,
                               room + i * panel * depth);
    if (panels.compressed) return {room, nullptr, alike_columns};
    return panels.as_half ? PanelPair{nullptr, halves(column), alike_columns}
                          : PanelPair{floats(column), nullptr, alike_columns};
  }
  float squares[2 * kWidestPanel];
  for (int64_t i = 0; i < 2; i++)
    pack_panel(column + i * panel, panel, room + i * panel * depth, squares + i * panel, room + 2 * panel * depth);
  return {room, nullptr, pair_is_alike(squares, panel)};
}

void PackedPanels::multiply_unpacked(const float* a, int64_t a_step, int64_t column, int64_t rows, int64_t n, float* c,
                                     int64_t c_step, const float* bias, bool add, float* scratch) const {
  const vector::Gemm& g = *panels.gemm;
  float* const room = scratch + g.panel * depth;
  for (int64_t j = 0; j < n; j += g.panel) {
    const int64_t wide = std::min(g.panel, n - j);
    pack_panel(column + j, wide, scratch, nullptr, room);
    g.multiply(a, a_step, scratch, rows, wide, depth, c + j, c_step, bias == nullptr ? nullptr : bias + j, add);
  }
}

void PackedPanels::multiply_widened(const float* a, int64_t a_step, int64_t column, int64_t rows, int64_t n, float* c,
                                    int64_t c_step, const float* bias, bool add, float* scratch) const {
  const vector::Gemm& g = *panels.gemm;
  const int64_t most = widened_columns(panels, depth);
  for (int64_t j = 0; j < n; j += most) {
    const int64_t some = std::min(most, n - j);
    for (int64_t i = 0; i < some; i += g.panel) {
      const int64_t width = (std::min(g.panel, some - i) + g.lanes - 1) / g.lanes * g.lanes;
      panels.compressed->widen(bytes.get(), column + j + i, width, panels.padded(product), 0, depth,
                               scratch + i * depth);
    }
    g.multiply(a, a_step, scratch, rows, some, depth, c + j, c_step, bias == nullptr ? nullptr : bias + j, add);
  }
}

void PackedPanels::multiply(const float* a, int64_t a_step, int64_t column, int64_t rows, int64_t n, float* c,
                            int64_t c_step, const float* bias, bool add, float* scratch) const {
  const vector::Gemm& g = *panels.gemm;
  if (panels.compressed)
    multiply_widened(a, a_step, column, rows, n, c, c_step, bias, add, scratch);
  else if (bytes.get() == nullptr)
    multiply_unpacked(a, a_step, column, rows, n, c, c_step, bias, add, scratch);
  else if (panels.as_half)
    g.multiply_halves(a, a_step, halves(column), rows, n, depth, c, c_step, bias, add, scratch);
  else
    g.multiply(a, a_step, floats(column), rows, n, depth, c, c_step, bias, add);
}

std::shared_ptr<const PackedPanels> packed_panels(KernelChoice& c, const MatchCall& m, const ConstantProduct& p,
                                                  const Panels& panels) {
  auto packed = std::make_shared<PackedPanels>();
  packed->panels = panels;
  packed->product = p;
  packed->depth = p.depth;
  packed->alike = panels.weight_bytes(p);
  auto weights = panels.gemm->panel * p.depth <= kMostUnpacked ? FileWeights::of(m, p.weights) : std::nullopt;
  // Halves are widened in whole columns, which must be contiguous.
  if (weights && (p.row_step == 1 || (p.column_step == 1 && !weights->is_half()))) {
    c.unpacked = weights->tensor();
    packed->unpacked = std::move(weights);
  }
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(p.weights)] = true;
  std::string key = cat("panels of ", panels.gemm->panel, " in ", panels.gemm->lanes,
                        panels.as_half ? " as float16" : "", " of depth ", p.depth,
                        p.row_step == 1 ? ", transposed" : "", panels.pairs == 0 ? "" : ", which pairs are alike");
  auto stored = panels.as_half ? m.stored_in_any_format(p.weights) : std::nullopt;
  c.prepare = [=, key = std::move(key), stored = std::move(stored)](kernel::PrepareContext& context) -> Status {
    const size_t bytes = panels.bytes(p);
    std::vector<float> squares(static_cast<size_t>(panels.pairs == 0 ? 0 : panels.count(p) / p.depth));
    const auto finish = [&](std::byte* to) {
      write_alike(panels, squares, reinterpret_cast<float*>(to + panels.weight_bytes(p)));
    };
    if (const auto& of = panels.compressed; of) {
      packed->bytes.set(MOKA_TRY(of->packed(context, p.weights, key, panels.padded(p), bytes,
                                            [&](CompressedWeights::Packer& packer, std::byte* to) {
                                              pack_compressed(p, panels, packer, squares);
                                              finish(to);
                                            })));
      return {};
    }
    if (panels.as_half) {
      packed->bytes.set(MOKA_TRY(
          pack_from_halves(context, *stored, p.weights, key, bytes, [&](const LoadValues& load, std::byte* to) {
            pack_halves(p, panels, load, reinterpret_cast<uint16_t*>(to), squares);
            finish(to);
          })));
      return {};
    }
    packed->bytes.set(
        MOKA_TRY(context.pack(p.weights, key, bytes, [&](const ir::TensorView& value, std::byte* to) -> Status {
          pack(p, panels, value.as<float>(), reinterpret_cast<float*>(to), squares);
          finish(to);
          return {};
        })));
    return {};
  };
  return packed;
}

}  // namespace moka::devices::cpu
