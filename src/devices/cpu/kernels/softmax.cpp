// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

namespace {

using vector::Binary;
using vector::loops;
using vector::Reduce;
using vector::Unary;

constexpr int64_t kSoftmaxColumns = 256;  // columns per tile when the axis is not the last one
constexpr int64_t kShortRow = 2048;       // longest row that a float sums accurately enough

/// The softmax of each of `columns` columns of `n` rows, which lie `step` apart. Where the rows lie one after the
/// other, several of them are one long row, whose parts are combined at the end.
void softmax_columns(const float* x, float* y, int64_t n, int64_t step, int64_t columns) {
  alignas(64) float top[kSoftmaxColumns], sum[kSoftmaxColumns];
  const int64_t joined = step == columns ? std::clamp<int64_t>(kSoftmaxColumns / columns, 1, n) : 1,
                wide = joined * columns;
  // Calls f(offset, columns) for each long row, and for what remains of the rows.
  const auto each_row = [&](auto f) {
    for (int64_t i = 0; i < n; i += joined) f(i * step, std::min(joined, n - i) * columns);
  };
  const auto combine = [&](Reduce how, float* v) {
    for (int64_t i = columns; i < wide; i += columns) loops().accumulate(how, v, v + i, columns);
    for (int64_t i = columns; i < wide; i += columns) std::copy_n(v, columns, v + i);
  };
  std::copy_n(x, wide, top);
  each_row([&](int64_t at, int64_t count) { loops().accumulate(Reduce::max, top, x + at, count); });
  combine(Reduce::max, top);
  std::fill_n(sum, wide, 0.0f);
  each_row([&](int64_t at, int64_t count) {
    loops().exp_minus(x + at, top, 1, y + at, count);
    loops().accumulate(Reduce::sum, sum, y + at, count);
  });
  combine(Reduce::sum, sum);
  each_row([&](int64_t at, int64_t count) { loops().binary(Binary::div, y + at, 1, sum, 1, y + at, count); });
}

Match match_softmax(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  auto given = m.call.integer("axis");
  if (!given.ok() || x.rank() == 0) return Match::no("no axis");
  const int axis = static_cast<int>(*given < 0 ? *given + x.rank() : *given);
  const int64_t n = x[axis], inner = x.count(axis + 1, x.rank()), outer = x.count(0, axis);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.softmax";
  c.in_place = static_cast<int>(in);
  c.cost = cost_of(m, 10.0 * static_cast<double>(x.count()), traffic(m));
  if (inner == 1) {
    c.tiles = outer;
    c.facts = [=](kernel::Facts& facts) { facts.add("rows", outer, " of ", n); };
    c.run = [=](const KernelArgs& args) -> Status {
      for (int64_t t = args.begin; t < args.end; t++) {
        const float* row = args.in[in].as<float>() + t * n;
        float* y = args.out[0].as<float>() + t * n;
        float top = -std::numeric_limits<float>::infinity();
        double sum = 0;
        if (n <= kShortRow) {
          if (y != row) std::copy_n(row, n, y);
          sum = static_cast<double>(loops().softmax_block(y, n, &top));
        } else {
          top = static_cast<float>(loops().reduce(Reduce::max, row, n));
          sum = loops().exp_minus(row, &top, 0, y, n);
        }
        loops().unary(Unary::linear, y, y, n, static_cast<float>(1 / sum), 0);
      }
      return {};
    };
    return Match::yes(std::move(c));
  }
  const int64_t parts = (inner + kSoftmaxColumns - 1) / kSoftmaxColumns;
  c.tiles = outer * parts;
  c.facts = [=](kernel::Facts& facts) {
    facts.add("columns at once", std::min(kSoftmaxColumns, inner), " of ", inner).add("rows of a column", n);
  };
  c.run = [=](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = t % parts * kSoftmaxColumns, columns = std::min(kSoftmaxColumns, inner - first),
                    at = t / parts * n * inner + first;
      softmax_columns(args.in[in].as<float>() + at, args.out[0].as<float>() + at, n, inner, columns);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_softmax() {
  static const KernelDef defs[] = {{.name = "cpu.softmax", .ops = {"softmax"}, .match = match_softmax}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
