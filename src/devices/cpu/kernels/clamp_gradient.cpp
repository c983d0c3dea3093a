// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/common.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gradients.h"

namespace moka::devices::cpu {

namespace {

Match match_clamp_gradient(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "dy"}); !why.empty()) return Match::no(why);
  const auto low = m.call.number("alpha"), high = m.call.number("beta");
  if (!low.ok() || !high.ok()) return Match::no("limits that are not constant");
  const auto x = static_cast<size_t>(m.call.arg_index("x")), dy = static_cast<size_t>(m.call.arg_index("dy"));
  const Layout layout = layout_of(m, layout_of(m, "dy").is_row_major() ? "x" : "dy");
  const Chunks chunks{storage_count(m.outputs[0].shape(), layout)};
  KernelChoice c;
  c.kernel = "cpu.clamp.gradient";
  c.in = in_layouts(m, "x", layout);
  c.in[dy] = layout;
  c.out = {layout};
  c.in_place = static_cast<int>(dy);
  c.tiles = chunks.tiles();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [=, low = static_cast<float>(*low), high = static_cast<float>(*high)](const KernelArgs& args) -> Status {
    const int64_t first = chunks.first(args.begin), n = chunks.first(args.end) - first;
    vector::gradients().clamp(args.in[x].as<float>() + first, args.in[dy].as<float>() + first, low, high,
                              args.out[0].as<float>() + first, n);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_clamp_gradient() {
  static const KernelDef defs[] = {
      {.name = "cpu.clamp.gradient", .ops = {"moka_clamp_gradient"}, .match = match_clamp_gradient}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
