// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

/// Works in place when nothing else reads x; it then copies only the update.
Match match_slice_update(const MatchCall& m) {
  if (!m.call.type("x").is_tensor() || m.call.dtype("x") == ir::DType::string) return Match::no("not a numeric tensor");
  KernelChoice c;
  c.kernel = "cpu.slice_update";
  c.in_place = m.call.arg_index("x");
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [](const KernelArgs& args) { return args.call->version().reference(*args.call, args.out); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_slice_update() {
  static const KernelDef defs[] = {{.name = "cpu.slice_update", .ops = {"slice_update"}, .match = match_slice_update}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
