// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/pool_lines.h"
#include "devices/cpu/isa.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/average.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::average;

Match match_avg_pool_blocked(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x"}); !why.empty()) return Match::no(why);
  auto window = ops::pool_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  auto exclude = given.call.flag("exclude_padding_from_average");
  if (!exclude.ok()) return Match::no("an unknown flag");
  if (!given.asked && layout_of(given, "x") != blocked() && isa() == Isa::avx512 && window->rank > 1)
    return Match::no("a row-major input");
  const Window w = window->as_3d();
  const ir::Shape x = given.call.shape("x"), y = given.outputs[0].shape();
  const double flops = static_cast<double>(y.count()) * static_cast<double>(w.taps());
  const MatchCall m = with_threads_for(given, flops);
  const int64_t block = channel_block(), groups = (x[1] + block - 1) / block;
  const BlockedTiles tiles = blocked_tiles(x[0], groups, w.out[1], m.threads);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.avg_pool";
  c.in = in_layouts(m, "x", blocked());
  c.out = {blocked()};
  c.tiles = x[0] * groups * tiles.bands;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  c.facts = [=](kernel::Facts& facts) {
    facts.add("channels at once", block).add("bands of rows", tiles.bands).add("taps", w.taps());
  };
  c.run = [=, inside = *exclude, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    vector::Average::Call call;
    set_lines(call, w, block, inside);
    auto* all = args.out[0].as<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      const auto [number, top, bottom] = tiles.at(t);
      const float* plane = args.in[in].as<float>() + number * w.in[0] * call.slice;
      for (int64_t i = 0; i < w.out[0]; i++) {
        const Inside deep = inside_of(w, 0, i);
        const int64_t begin = ((number * w.out[0] + i) * w.out[1] + top) * w.out[2] * block;
        const int64_t end = begin + (bottom - top) * w.out[2] * block;
        call.y = all + begin;
        for (int64_t j = top; j < bottom; j++, call.y += w.out[2] * block) {
          const Inside down = inside_of(w, 1, j);
          call.x = plane + deep.first * call.slice + down.first * call.line;
          call.slices = deep.count;
          call.lines = down.count;
          const int64_t lines = inside ? deep.count * down.count : w.kernel[0] * w.kernel[1];
          call.over = static_cast<float>(std::max<int64_t>(lines, 1));
          average().line(call);
        }
        if (!after.empty()) finish_blocked(y, nullptr, after, all, begin, end);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_avg_pool() {
  static const KernelDef defs[] = {{.name = "cpu.avg_pool", .ops = {"avg_pool"}, .match = match_avg_pool_blocked}};
  return {110, defs};
}

}  // namespace moka::devices::cpu
