#include "devices/cpu/kernels/families.h"

namespace moka::devices::cpu {

namespace {

/// Over its input where nobody else needs that: only the update is copied then.
Match match_slice_update(const MatchCall& m) {
  if (!m.call.type("x").is_tensor() || m.call.dtype("x") == ir::DType::string) return Match::no("no numbers");
  KernelChoice c;
  c.kernel = "cpu.slice_update";
  c.in_place = m.call.arg_index("x");
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [](const KernelArgs& args) { return args.call->version().reference(*args.call, args.out); };
  return Match::yes(std::move(c));
}

}  // namespace

std::span<const KernelDef> slice_update_kernels() {
  static const KernelDef defs[] = {{"cpu.slice_update", {"slice_update"}, match_slice_update}};
  return defs;
}

}  // namespace moka::devices::cpu
