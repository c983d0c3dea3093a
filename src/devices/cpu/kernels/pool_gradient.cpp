// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/cpu/common/common.h"
#include "devices/cpu/common/pool_lines.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gradients.h"
#include "ops/common/window.h"

/// Gradients of pools of blocked channels. A tile is a block of channels of an image.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::gradients;
using vector::Gradients;

struct PoolGradient {
  Window w;  ///< of rank 3
  bool max, inside;
  size_t x, dy;

  void operator()(const KernelArgs& args, int64_t plane) const {
    const int64_t block = gradients().block, size = w.in_count() * block;
    Gradients::Pool call{};
    set_lines(call, w, block, inside);
    call.dy = args.in[dy].as<float>() + plane * w.out_count() * block;
    // Averages do not read x.
    const float* from = max ? args.in[x].as<float>() + plane * size : nullptr;
    float* to = args.out[0].as<float>() + plane * size;
    std::fill_n(to, size, 0.0f);
    for (int64_t i = 0; i < w.out[0]; i++) {
      const Inside deep = inside_of(w, 0, i);
      for (int64_t j = 0; j < w.out[1]; j++, call.dy += call.out * block) {
        const Inside down = inside_of(w, 1, j);
        const int64_t first = deep.first * call.slice + down.first * call.line;
        call.x = from + first;
        call.dx = to + first;
        call.slices = deep.count;
        call.lines = down.count;
        call.over = static_cast<float>(inside ? deep.count * down.count : w.kernel[0] * w.kernel[1]);
        (max ? gradients().max_pool : gradients().avg_pool)(call);
      }
    }
  }
};

Match match_pool_gradient(const MatchCall& m, std::string_view name, bool max) {
  if (std::string why = require_fp32(m, {"x", "dy"}); !why.empty()) return Match::no(why);
  auto window = ops::pool_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  auto exclude = max ? Result<bool>(false) : m.call.flag("exclude_padding_from_average");
  if (!exclude.ok()) return Match::no("an unknown flag");
  const ir::Shape& x = m.call.shape("x");
  PoolGradient run{window->as_3d(), max, *exclude, static_cast<size_t>(m.call.arg_index("x")),
                   static_cast<size_t>(m.call.arg_index("dy"))};
  KernelChoice c;
  c.kernel = name;
  c.in = in_layouts(m, "dy", blocked());
  // The values of x do not matter for averages, and so its layout does not.
  c.in[run.x] = max ? blocked() : layout_of(m, "x");
  c.out = {blocked()};
  c.tiles = x[0] * ((x[1] + channel_block() - 1) / channel_block());
  c.cost = cost_of(m, static_cast<double>(m.call.shape("dy").count() * run.w.taps()), traffic(m));
  c.run = [run = std::move(run)](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) run(args, t);
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_max_pool_gradient(const MatchCall& m) { return match_pool_gradient(m, "cpu.max_pool.gradient", true); }
Match match_avg_pool_gradient(const MatchCall& m) { return match_pool_gradient(m, "cpu.avg_pool.gradient", false); }

}  // namespace

KernelFamily family_pool_gradient() {
  static const KernelDef defs[] = {
      {.name = "cpu.max_pool.gradient", .ops = {"moka_max_pool_gradient"}, .match = match_max_pool_gradient},
      {.name = "cpu.avg_pool.gradient", .ops = {"moka_avg_pool_gradient"}, .match = match_avg_pool_gradient}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
