// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/kernels/family.h"
#include "ops/common/common.h"
#include "ops/common/slicing.h"
#include "ops/common/strided.h"

namespace moka::devices::cpu {

namespace {

Match match_slice(const MatchCall& m) {
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const ir::DType dtype = m.call.dtype("x");
  if (!has_bytes(dtype)) return Match::no(cat("element type ", dtype));
  if (y.count() == 0) return Match::no("an empty result");
  const auto cut = ops::known_slice(m.call);
  if (!cut) return Match::no("bounds that are known only while running");
  if (!(cut->shape() == y)) return Match::no("another shape than planned");

  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.slice";
  const Layout layout = layout_of(m, "x");
  // Whole groups of channels of one image.
  if (layout.kind == Layout::Kind::channel_blocked && y.rank() == x.rank() && x[0] == 1 &&
      cut->axes[1].start % layout.block == 0 && cut->axes[1].step == 1 &&
      (y[1] % layout.block == 0 || cut->axes[1].start + y[1] == x[1]) && y.count(2, y.rank()) == x.count(2, x.rank()) &&
      std::all_of(cut->axes + 2, cut->axes + cut->rank, [](const auto& k) { return k.step == 1; })) {
    c.kernel = "cpu.slice.blocked";
    c.in = in_layouts(m, "x", layout);
    c.out = {layout};
    const int64_t at = cut->axes[1].start * x.count(2, x.rank()), n = storage_count(y, layout);
    c.cuts.push_back({static_cast<int>(in), 0, static_cast<size_t>(at) * sizeof(float)});
    c.cost = cost_of(m, 0, traffic(m));
    c.run = [=](const KernelArgs& args) -> Status {
      std::copy_n(args.in[in].as<float>() + at, n, args.out[0].as<float>());
      return {};
    };
    return Match::yes(std::move(c));
  }
  const int64_t first = ops::first_of(*cut, x);
  const ops::StridedCopy copy = ops::copy_of(*cut, x);
  if (ops::is_run(*cut, x))
    c.cuts.push_back({static_cast<int>(in), 0, static_cast<size_t>(first) * static_cast<size_t>(ir::bits(dtype)) / 8});
  c.cost = cost_of(m, 0, 2 * static_cast<double>(y.count()) * ir::bits(dtype) / 8);
  c.run = [=](const KernelArgs& args) -> Status {
    copy.run(args.out[0], 0, args.in[in], first);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_slice() {
  static const KernelDef defs[] = {
      {.name = "cpu.slice", .ops = {"slice_by_index", "slice_by_size", "reverse", "crop"}, .match = match_slice}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
