// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::loops;
using vector::Reduce;

/// oneDNN's pooling drops NaN, so these are our own loops. They take maxima over the rows of a window, then along the
/// row.
Match match_max_pool(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  auto window = ops::pool_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  const Window w = window->as_3d();
  for (int i = 0; i < 3; i++) {
    if (w.pads_begin[i] >= w.kernel[i] || w.pads_end[i] >= w.kernel[i])
      return Match::no("a window that lies in padding alone");
  }
  const ir::Shape x = m.call.shape("x"), out = m.outputs[0].shape();
  const Layout arrives = layout_of(m, "x");
  const Layout layout = arrives == Layout::blocked(8) || arrives == Layout::blocked(16) ? arrives : Layout{};
  const int lanes = layout.is_row_major() ? 1 : layout.block;
  const int64_t groups = (x[1] + lanes - 1) / lanes, row = w.in[2] * lanes, to_row = w.out[2] * lanes;
  const BlockedTiles tiles = blocked_tiles(x[0], groups, w.out[1], layout.is_row_major() ? 1 : m.threads);
  const bool flat = w.kernel[0] == 1 && w.kernel[1] == 1;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.max_pool";
  c.in = in_layouts(m, "x", layout);
  c.out = {layout};
  c.tiles = x[0] * groups * tiles.bands;
  c.thread_scratch = flat ? 0 : static_cast<size_t>(row) * sizeof(float);
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, static_cast<double>(out.count()) * static_cast<double>(w.taps()), traffic(m));
  c.facts = [=](kernel::Facts& facts) {
    facts.add("channels at once", lanes).add("bands of rows", tiles.bands).add("taps", w.taps());
  };
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    float* best = args.own<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      const auto [number, top, bottom] = tiles.at(t);
      const float* plane = args.in[in].as<float>() + number * w.in[0] * w.in[1] * row;
      for (int64_t od = 0; od < w.out[0]; od++) {
        const int64_t begin = ((number * w.out[0] + od) * w.out[1] + top) * to_row;
        float* y = args.out[0].as<float>() + begin;
        for (int64_t oh = top; oh < bottom; oh++, y += to_row) {
          const int64_t d = od * w.strides[0] - w.pads_begin[0], h = oh * w.strides[1] - w.pads_begin[1];
          const float* from = nullptr;
          for (int64_t i = std::max<int64_t>(d, 0); i < std::min(d + w.kernel[0], w.in[0]); i++)
            for (int64_t j = std::max<int64_t>(h, 0); j < std::min(h + w.kernel[1], w.in[1]); j++) {
              const float* line = plane + (i * w.in[1] + j) * row;
              if (from == nullptr) {
                from = line;
              } else {
                if (from != best) std::copy_n(from, row, best);
                loops().accumulate(Reduce::max, best, line, row);
                from = best;
              }
            }
          loops().max_slide(from, w.in[2], lanes, w.out[2], w.strides[2], w.pads_begin[2], w.kernel[2], y);
          apply_all(after, y, to_row);
        }
        clear_padding(out, layout, args.out[0].as<float>(), begin, begin + (bottom - top) * to_row);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_max_pool() {
  static const KernelDef defs[] = {{.name = "cpu.max_pool", .ops = {"max_pool"}, .match = match_max_pool}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
