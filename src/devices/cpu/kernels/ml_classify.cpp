// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/doubles.h"
#include "ops/common/ml.h"

/// The classes of the highest scores, of several rows at once.
namespace moka::devices::cpu {

namespace {

constexpr int64_t kClassifyRows = 256;  // rows per tile

Match match_classify(const MatchCall& m) {
  const auto rows = ops::ml::has_rows(m.call);
  const ir::TensorView& classes = *m.call.value("classes");
  const ir::Shape& x = m.call.shape("x");
  if (!rows.ok() || !*rows || x.count() == 0) return Match::no("a single row");
  if (classes.dtype != ir::DType::int64) return Match::no("classes that are text");
  const int64_t count = x[0], columns = classes.count();
  KernelChoice c;
  c.kernel = "cpu.ml.classify";
  c.tiles = (count + kClassifyRows - 1) / kClassifyRows;
  c.cost = cost_of(m, 2 * static_cast<double>(x.count()), 16 * static_cast<double>(x.count()));
  c.run = [=, x_at = static_cast<size_t>(m.call.arg_index("x")),
           classes_at = static_cast<size_t>(m.call.arg_index("classes"))](const KernelArgs& args) -> Status {
    const int64_t first = args.begin * kClassifyRows, n = std::min(args.end * kClassifyRows, count) - first;
    const double* from = args.in[x_at].as<double>() + first * columns;
    const int64_t* label = args.in[classes_at].as<int64_t>();
    int64_t* to = args.out[0].as<int64_t>() + first;
    std::copy_n(from, n * columns, args.out[1].as<double>() + first * columns);
    vector::double_loops().largest(from, n, columns, to);
    for (int64_t r = 0; r < n; r++) to[r] = label[to[r]];
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_ml_classify() {
  static const KernelDef defs[] = {{.name = "cpu.ml.classify", .ops = {"ml_classify"}, .match = match_classify}};
  return {230, defs};
}

}  // namespace moka::devices::cpu
