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
  c.run = [=](const KernelArgs& args) -> Status {
    alignas(64) float top[kSoftmaxColumns], sum[kSoftmaxColumns];
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = t % parts * kSoftmaxColumns, columns = std::min(kSoftmaxColumns, inner - first),
                    at = t / parts * n * inner + first;
      const float* from = args.in[in].as<float>() + at;
      float* y = args.out[0].as<float>() + at;
      std::copy_n(from, columns, top);
      for (int64_t i = 1; i < n; i++) loops().accumulate(Reduce::max, top, from + i * inner, columns);
      std::fill_n(sum, columns, 0.0f);
      for (int64_t i = 0; i < n; i++) {
        loops().exp_minus(from + i * inner, top, 1, y + i * inner, columns);
        loops().accumulate(Reduce::sum, sum, y + i * inner, columns);
      }
      for (int64_t i = 0; i < n; i++) loops().binary(Binary::div, y + i * inner, 1, sum, 1, y + i * inner, columns);
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
