// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/channel_norm.h"

#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

using vector::channel_norm;

/// A layer norm over the channels of images.
Match match_channel_norm(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "gamma", "beta"}); !why.empty()) return Match::no(why);
  const ir::Shape x = m.call.shape("x");
  const auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  const auto axes = m.call.has("axes") ? m.call.ints("axes") : ir::Ints{};
  if (!axes.ok()) return Match::no("axes that are not constant");
  if (x.rank() < 3 || axes->size() != 1 || ((*axes)[0] != 1 && (*axes)[0] != 1 - x.rank()))
    return Match::no("axes that are not the channels of an image");
  const Layout arrives = layout_of(m, "x");
  const Layout layout = arrives.kind == Layout::Kind::channel_blocked ? arrives : Layout{};
  const int64_t channels = x[1], pixels = x.count(2, x.rank());
  const int64_t image = storage_count(x, layout) / x[0], step = pixels * (layout.is_row_major() ? 1 : layout.block);
  const int64_t per_tile = std::clamp<int64_t>(Chunks::kElements / channels / 16 * 16, 16, 512),
                bands = (pixels + per_tile - 1) / per_tile;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int gamma = m.call.arg_index("gamma"), beta = m.call.arg_index("beta");
  KernelChoice c;
  c.kernel = "cpu.channel_norm";
  c.in = in_layouts(m, "x", layout);
  c.out = {layout};
  c.in_place = static_cast<int>(in);
  c.tiles = x[0] * bands;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 0, 2 * traffic(m));
  c.run = [=, e = static_cast<float>(*epsilon), after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float *g = data_of(args, gamma), *b = data_of(args, beta);
    const int64_t width = layout.is_row_major() ? 1 : layout.block, parts = image / step;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = t % bands * per_tile, n = std::min(per_tile, pixels - first);
      const int64_t at = t / bands * image + first * width;
      const float* from = args.in[in].as<float>() + at;
      float* y = args.out[0].as<float>() + at;
      if (layout.is_row_major())
        channel_norm().planes(from, step, channels, n, g, b, e, y);
      else
        channel_norm().blocked(from, step, channels, n, static_cast<int>(width), g, b, e, y);
      for (int64_t k = 0; !after.empty() && k < parts; k++) {
        apply_all(after, y + k * step, n * width);
        clear_padding(x, layout, args.out[0].as<float>(), at + k * step, at + k * step + n * width);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_channel_norm() {
  static const KernelDef defs[] = {{.name = "cpu.channel_norm", .ops = {"layer_norm"}, .match = match_channel_norm}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
