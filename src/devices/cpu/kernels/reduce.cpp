// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/single_axis.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/reduction.h"

namespace moka::devices::cpu {

namespace {

using vector::loops;
using vector::Reduce;

enum class Finish : uint8_t { none, mean, root, log };

struct ReduceEntry {
  std::string_view op;
  Reduce f;
  Finish finish;
};

constexpr ReduceEntry kReduceEntries[] = {{"reduce_sum", Reduce::sum, Finish::none},
                                          {"reduce_mean", Reduce::sum, Finish::mean},
                                          {"reduce_max", Reduce::max, Finish::none},
                                          {"reduce_min", Reduce::min, Finish::none},
                                          {"reduce_l1_norm", Reduce::sum_abs, Finish::none},
                                          {"reduce_l2_norm", Reduce::sum_square, Finish::root},
                                          {"reduce_sum_square", Reduce::sum_square, Finish::none},
                                          {"reduce_log_sum", Reduce::sum, Finish::log}};

constexpr int64_t kReduceColumns = 512;
constexpr int64_t kReduceBlock = 64;  // rows per partial sum, which bounds the rounding error

float finish(Finish how, double v, int64_t n) {
  switch (how) {
    case Finish::none: return static_cast<float>(v);
    case Finish::mean: return static_cast<float>(v / static_cast<double>(n));
    case Finish::root: return static_cast<float>(std::sqrt(v));
    case Finish::log: return static_cast<float>(std::log(v));
  }
  return 0;
}

bool is_sum(Reduce f) { return f != Reduce::max && f != Reduce::min; }

/// Reduces `rows` rows, `step` floats apart, to acc[0..columns). columns <= kReduceColumns.
void reduce_rows(Reduce f, const float* x, int64_t rows, int64_t step, int64_t columns, float* acc) {
  if (!is_sum(f)) {
    std::copy_n(x, columns, acc);
    for (int64_t r = 1; r < rows; r++) loops().accumulate(f, acc, x + r * step, columns);
    return;
  }
  std::fill_n(acc, columns, 0.0f);
  alignas(64) float block[kReduceColumns];
  for (int64_t r0 = 0; r0 < rows; r0 += kReduceBlock) {
    std::fill_n(block, columns, 0.0f);
    for (int64_t r = r0; r < std::min(rows, r0 + kReduceBlock); r++)
      loops().accumulate(f, block, x + r * step, columns);
    loops().accumulate(Reduce::sum, acc, block, columns);
  }
}

/// Reduces pixels of `block` channels to acc[0..block). Several pixels are reduced side by side and folded at the end,
/// so acc holds kReduceColumns floats.
void fold_pixels(Reduce f, const float* x, int64_t pixels, int64_t block, float* acc) {
  const int64_t wide = std::min(pixels, kReduceColumns / block), rows = pixels / wide;
  reduce_rows(f, x, rows, wide * block, wide * block, acc);
  loops().accumulate(f, acc, x + rows * wide * block, (pixels - rows * wide) * block);
  for (int64_t left = wide; left > 1; left -= left / 2)
    loops().accumulate(is_sum(f) ? Reduce::sum : f, acc, acc + (left - left / 2) * block, left / 2 * block);
}

/// Reduces each blocked channel over all of its pixels.
Match over_pixels(const MatchCall& m, const ReduceEntry& e, Layout layout, bool keep) {
  const ir::Shape x = m.call.shape("x");
  const int64_t block = layout.block, channels = x[1], groups = (channels + block - 1) / block,
                pixels = x.count(2, x.rank());
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const bool blocked_out = keep && x.rank() >= 3;
  KernelChoice c;
  c.kernel = "cpu.reduce.pixels";
  c.in = in_layouts(m, "x", layout);
  c.out = {blocked_out ? layout : Layout{}};
  c.tiles = x[0] * groups;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    alignas(64) float acc[kReduceColumns];
    for (int64_t t = args.begin; t < args.end; t++) {
      const float* data = args.in[in].as<float>() + t * pixels * block;
      if (e.f == Reduce::sum)
        loops().sum_pixels(data, pixels, static_cast<int>(block), acc);
      else
        fold_pixels(e.f, data, pixels, block, acc);
      const int64_t image = t / groups, group = t % groups, used = std::min(block, channels - group * block);
      float* y = args.out[0].as<float>() + (blocked_out ? t * block : image * channels + group * block);
      for (int64_t lane = 0; lane < used; lane++) y[lane] = finish(e.finish, static_cast<double>(acc[lane]), pixels);
      apply_all(after, y, used);
      if (blocked_out) std::fill(y + used, y + block, 0.0f);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

/// Sums each channel over all images and pixels: [images, channels, pixels] without adjacent axes.
Match over_images(const MatchCall& m, const ReduceEntry& e, Layout layout) {
  const ir::Shape x = m.call.shape("x");
  const int64_t block = layout.is_row_major() ? 1 : layout.block, channels = x[1], images = x[0];
  const int64_t groups = (channels + block - 1) / block, pixels = x.count(2, x.rank());
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.reduce.images";
  c.in = in_layouts(m, "x", layout);
  c.tiles = groups;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    alignas(64) float acc[kReduceColumns];
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t used = std::min(block, channels - t * block);
      std::array<double, 16> totals{};
      for (int64_t image = 0; image < images; image++) {
        const float* data = args.in[in].as<float>() + (image * groups + t) * pixels * block;
        if (block == 1) {
          totals[0] += loops().reduce(e.f, data, pixels);
          continue;
        }
        if (e.f == Reduce::sum)
          loops().sum_pixels(data, pixels, static_cast<int>(block), acc);
        else
          fold_pixels(e.f, data, pixels, block, acc);
        for (int64_t lane = 0; lane < used; lane++) totals[static_cast<size_t>(lane)] += static_cast<double>(acc[lane]);
      }
      float* y = args.out[0].as<float>() + t * block;
      for (int64_t lane = 0; lane < used; lane++)
        y[lane] = finish(e.finish, totals[static_cast<size_t>(lane)], images * pixels);
      apply_all(after, y, used);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_reduce(const MatchCall& m) {
  const ReduceEntry* found = nullptr;
  for (const ReduceEntry& e : kReduceEntries)
    if (e.op == m.call.version().def->name) found = &e;
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  const ReduceEntry e = *found;
  const ir::Shape x = m.call.shape("x");
  auto axes = ops::reduced_axes(m.call, x.rank());
  auto keep = m.call.flag("keep_dims");
  if (!axes.ok() || !keep.ok()) return Match::no("axes that are not constant");
  bool reduced[ir::kMaxRank] = {};
  for (int64_t a : *axes) reduced[a] = true;
  const Layout layout = layout_of(m, "x");
  if (layout.kind == Layout::Kind::channel_blocked && (layout.block == 8 || layout.block == 16)) {
    bool pixels = !reduced[0] && !reduced[1];
    for (int i = 2; i < x.rank(); i++) pixels &= reduced[i];
    if (pixels) return over_pixels(m, e, layout, *keep);
  }
  bool images = x.rank() >= 3 && x[0] > 1 && reduced[0] && !reduced[1] && is_sum(e.f);
  for (int i = 2; i < x.rank(); i++) images &= reduced[i];
  if (images) return over_images(m, e, layout.kind == Layout::Kind::channel_blocked ? layout : Layout{});
  const auto axis = single_axis(x, *axes);
  if (!axis) return Match::no("axes that are not adjacent");
  const int64_t outer = axis->outer, n = axis->n, inner = axis->inner;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.reduce";
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 0, traffic(m));
  auto after = activations_of(m.epilogue);
  if (inner == 1) {
    c.tiles = outer;
    c.run = [=](const KernelArgs& args) -> Status {
      float* y = args.out[0].as<float>();
      for (int64_t t = args.begin; t < args.end; t++)
        y[t] = finish(e.finish, loops().reduce(e.f, args.in[in].as<float>() + t * n, n), n);
      apply_all(after, y + args.begin, args.end - args.begin);
      return {};
    };
    return Match::yes(std::move(c));
  }
  const int64_t parts = (inner + kReduceColumns - 1) / kReduceColumns;
  c.tiles = outer * parts;
  c.run = [=](const KernelArgs& args) -> Status {
    alignas(64) float acc[kReduceColumns];
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t o = t / parts, first = t % parts * kReduceColumns,
                    columns = std::min(kReduceColumns, inner - first);
      reduce_rows(e.f, args.in[in].as<float>() + o * n * inner + first, n, inner, columns, acc);
      float* y = args.out[0].as<float>() + o * inner + first;
      for (int64_t i = 0; i < columns; i++) y[i] = finish(e.finish, static_cast<double>(acc[i]), n);
      apply_all(after, y, columns);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

/// The row of the first largest (`sign` 1) or smallest (-1) number of each column. The first NaN wins over every
/// number.
void best_rows(const float* x, float sign, int64_t rows, int64_t step, int64_t columns, int32_t* best) {
  alignas(64) float top[kReduceColumns];
  for (int64_t i = 0; i < columns; i++) {
    top[i] = sign * x[i];
    best[i] = 0;
  }
  for (int64_t r = 1; r < rows; r++) {
    x += step;
    for (int64_t i = 0; i < columns; i++) {
      const float v = sign * x[i];
      const bool better = v > top[i] || (v != v && top[i] == top[i]);
      top[i] = better ? v : top[i];
      best[i] = better ? static_cast<int32_t>(r) : best[i];
    }
  }
}

Match match_argmax(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  if (m.call.dtype("x") != ir::DType::fp32) return Match::no(cat("element type ", m.call.dtype("x")));
  auto axis = m.call.integer("axis");
  if (!axis.ok() || x.count() == 0) return Match::no("an empty tensor");
  const int at = static_cast<int>(*axis < 0 ? *axis + x.rank() : *axis);
  const int64_t n = x[at];
  const int64_t inner = x.count(at + 1, x.rank());
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const Reduce f = m.call.version().def->name == "reduce_argmax" ? Reduce::max : Reduce::min;
  KernelChoice c;
  c.kernel = "cpu.reduce_arg";
  if (inner > 1) {
    if (n > std::numeric_limits<int32_t>::max()) return Match::no("more than 2^31 elements along the axis");
    const int64_t parts = (inner + kReduceColumns - 1) / kReduceColumns;
    c.tiles = x.count() / n / inner * parts;
    c.cost = cost_of(m, 0, traffic(m));
    c.run = [=](const KernelArgs& args) -> Status {
      alignas(64) int32_t best[kReduceColumns];
      for (int64_t t = args.begin; t < args.end; t++) {
        const int64_t outer = t / parts, first = t % parts * kReduceColumns,
                      columns = std::min(kReduceColumns, inner - first);
        best_rows(args.in[in].as<float>() + outer * n * inner + first, f == Reduce::max ? 1.0f : -1.0f, n, inner,
                  columns, best);
        for (int64_t i = 0; i < columns; i++) ir::store_i64(args.out[0], outer * inner + first + i, best[i]);
      }
      return {};
    };
    return Match::yes(std::move(c));
  }
  c.tiles = x.count() / n;
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [=](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) {
      const float* row = args.in[in].as<float>() + t * n;
      const auto best = static_cast<float>(loops().reduce(f, row, n));
      int64_t i = 0;
      while (i < n - 1 && row[i] != best && !(best != best && row[i] != row[i])) i++;
      ir::store_i64(args.out[0], t, i);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_reduce() {
  static const KernelDef defs[] = {
      {.name = "cpu.reduce",
       .ops = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_l1_norm", "reduce_l2_norm",
               "reduce_sum_square", "reduce_log_sum"},
       .match = match_reduce},
      {.name = "cpu.reduce_arg", .ops = {"reduce_argmax", "reduce_argmin"}, .match = match_argmax}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
