// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

/// Writes `count` copies of `bytes` bytes side by side.
void repeat(const std::byte* from, size_t bytes, int64_t count, std::byte* to) {
  const size_t all = bytes * static_cast<size_t>(count);
  std::memcpy(to, from, bytes);
  for (size_t done = bytes; done < all; done *= 2) std::memcpy(to + done, to, std::min(done, all - done));
}

/// A row is what lies behind the last axis that repeats, with this axis.
Match match_tile(const MatchCall& m) {
  const ir::Shape x = m.call.shape("x"), y = m.outputs[0].shape();
  const ir::DType dtype = m.call.dtype("x");
  if (!has_bytes(dtype)) return Match::no(cat("element type ", dtype));
  if (y.count() == 0) return Match::no("an empty result");
  int axis = x.rank() - 1;
  while (axis > 0 && x[axis] == y[axis]) axis--;
  const int64_t repeats = x.rank() == 0 ? 1 : y[axis] / x[axis];
  const size_t row =
      static_cast<size_t>(x.count(std::max(axis, 0), x.rank())) * static_cast<size_t>(ir::bits(dtype)) / 8;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.tile";
  c.tiles = y.count(0, std::max(axis, 0));
  c.cost = cost_of(m, 0, 2 * static_cast<double>(y.count()) * ir::bits(dtype) / 8);
  c.run = [=](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) {
      int64_t from = 0, step = 1, index = t;
      for (int i = axis - 1; i >= 0; i--) {
        from += index % y[i] % x[i] * step;
        index /= y[i];
        step *= x[i];
      }
      repeat(args.in[in].as<std::byte>() + static_cast<size_t>(from) * row, row, repeats,
             args.out[0].as<std::byte>() + static_cast<size_t>(t * repeats) * row);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_tile() {
  static const KernelDef defs[] = {{.name = "cpu.tile", .ops = {"tile"}, .match = match_tile}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
