// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::loops;
using vector::Reduce;
using vector::Unary;

/// Sums squares over the rows of a window, then along the row.
Match match_l2_pool(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  auto window = ops::pool_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  const Window w = window->as_3d();
  const ir::Shape x = m.call.shape("x"), out = m.outputs[0].shape();
  const Layout arrives = layout_of(m, "x");
  const Layout layout = arrives == Layout::blocked(8) || arrives == Layout::blocked(16) ? arrives : Layout{};
  const int64_t lanes = layout.is_row_major() ? 1 : layout.block, groups = (x[1] + lanes - 1) / lanes;
  // A row of sums, with the padding before it and up to the end of the last window.
  const int64_t pad = w.pads_begin[2] * lanes, columns = ((w.out[2] - 1) * w.strides[2] + 1) * lanes;
  const int64_t reach = std::max(columns + (w.kernel[2] - 1) * lanes, pad + w.in[2] * lanes);
  const BlockedTiles tiles = blocked_tiles(x[0], groups, w.out[1], layout.is_row_major() ? 1 : m.threads);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.l2_pool";
  c.in = in_layouts(m, "x", layout);
  c.out = {layout};
  c.tiles = x[0] * groups * tiles.bands;
  c.thread_scratch = static_cast<size_t>(reach + columns) * sizeof(float);
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, static_cast<double>(out.count()) * static_cast<double>(w.taps()), traffic(m));
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    float *const squares = args.own<float>(), *const sums = squares + reach;
    const int64_t row = w.in[2] * lanes, to_row = w.out[2] * lanes, step = w.strides[2] * lanes;
    for (int64_t t = args.begin; t < args.end; t++) {
      const auto [number, top, bottom] = tiles.at(t);
      const float* plane = args.in[in].as<float>() + number * w.in[1] * row;
      const int64_t begin = (number * w.out[1] + top) * to_row;
      float* y = args.out[0].as<float>() + begin;
      for (int64_t oh = top; oh < bottom; oh++, y += to_row) {
        std::fill_n(squares, reach, 0.0f);
        const int64_t h = oh * w.strides[1] - w.pads_begin[1];
        for (int64_t j = std::max<int64_t>(h, 0); j < std::min(h + w.kernel[1], w.in[1]); j++)
          loops().accumulate(Reduce::sum_square, squares + pad, plane + j * row, row);
        float* const whole = step == lanes ? y : sums;
        std::copy_n(squares, columns, whole);
        for (int64_t k = 1; k < w.kernel[2]; k++) loops().accumulate(Reduce::sum, whole, squares + k * lanes, columns);
        if (whole != y && lanes == 1)
          for (int64_t o = 0; o < w.out[2]; o++) y[o] = sums[o * step];
        else if (whole != y)
          for (int64_t o = 0; o < w.out[2]; o++) std::copy_n(sums + o * step, lanes, y + o * lanes);
        loops().unary(Unary::sqrt, y, y, to_row, 0, 0);
        apply_all(after, y, to_row);
      }
      clear_padding(out, layout, args.out[0].as<float>(), begin, begin + (bottom - top) * to_row);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_l2_pool() {
  static const KernelDef defs[] = {{.name = "cpu.l2_pool", .ops = {"l2_pool"}, .match = match_l2_pool}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
