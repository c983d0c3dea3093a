// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

namespace {

using vector::loops;

constexpr int64_t kSumColumns = 256;  // columns that are summed side by side

Match match_cumsum(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  auto axis = m.call.integer("axis");
  auto exclusive = m.call.flag("exclusive"), reverse = m.call.flag("reverse");
  if (!axis.ok() || !exclusive.ok() || !reverse.ok()) return Match::no("a parameter that is not constant");
  const ir::Shape& x = m.call.shape("x");
  const int at = static_cast<int>(*axis < 0 ? *axis + x.rank() : *axis);
  const int64_t n = x[at], inner = x.count(at + 1, x.rank()), parts = (inner + kSumColumns - 1) / kSumColumns;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.cumsum";
  c.in_place = static_cast<int>(in);
  c.tiles = x.count() / n / inner * parts;
  constexpr double kEach = 100;  // floating-point operations in the time of one sum, which waits for the one before
  c.cost = cost_of(m, kEach * static_cast<double>(x.count()) / static_cast<double>(std::min<int64_t>(inner, 16)),
                   traffic(m));
  // Sums are doubles, as the definition says.
  c.run = [=, before = *exclusive, backwards = *reverse](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t column = t % parts * kSumColumns, columns = std::min(kSumColumns, inner - column);
      const int64_t first = t / parts * n * inner + column + (backwards ? (n - 1) * inner : 0);
      const int64_t step = backwards ? -inner : inner;
      const float* from = args.in[in].as<float>() + first;
      float* to = args.out[0].as<float>() + first;
      loops().running_sums(from, step, n, columns, before, to);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_cumsum() {
  static const KernelDef defs[] = {{.name = "cpu.cumsum", .ops = {"cumsum"}, .match = match_cumsum}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
