// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/kernels/family.h"
#include "ops/common/ml.h"

/// Adds and multiplies constants in double, for many rows.
namespace moka::devices::cpu {

namespace {

constexpr int64_t kTileElements = 8192;

Match match_scale(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  const auto rows = ops::ml::has_rows(m.call);
  if (m.call.type("x").dtype() != ir::DType::fp64) return Match::no("a type other than double");
  if (!rows.ok() || !*rows || x.count() == 0) return Match::no("a single row");
  const int64_t count = x[0], columns = x.count() / count;
  const int64_t together = std::max<int64_t>(kTileElements / columns, 1);
  KernelChoice c;
  c.kernel = "cpu.ml.scale";
  c.tiles = (count + together - 1) / together;
  c.cost = cost_of(m, 2 * static_cast<double>(x.count()), 16 * static_cast<double>(x.count()));
  const auto index_of = [&](std::string_view name) { return static_cast<size_t>(m.call.arg_index(name)); };
  c.run = [=, x_at = index_of("x"), shift_at = index_of("shift"), scale_at = index_of("scale"),
           shift_step = m.call.value("shift")->count() == 1 ? 0 : 1,
           scale_step = m.call.value("scale")->count() == 1 ? 0 : 1](const KernelArgs& args) -> Status {
    const double *shift = args.in[shift_at].as<double>(), *scale = args.in[scale_at].as<double>();
    const int64_t last = std::min(args.end * together, count);
    for (int64_t r = args.begin * together; r < last; r++) {
      const double* from = args.in[x_at].as<double>() + r * columns;
      double* to = args.out[0].as<double>() + r * columns;
      for (int64_t i = 0; i < columns; i++) to[i] = scale[i * scale_step] * (from[i] + shift[i * shift_step]);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_ml_scale() {
  static const KernelDef defs[] = {{.name = "cpu.ml.scale", .ops = {"ml_scale"}, .match = match_scale}};
  return {220, defs};
}

}  // namespace moka::devices::cpu
