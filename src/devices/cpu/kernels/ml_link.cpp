// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/doubles.h"
#include "ops/common/ml.h"

/// Turns scores into probabilities in double, with exponentials of many rows at once.
namespace moka::devices::cpu {

namespace {

constexpr int64_t kLinkRows = 256;  // rows per tile

/// With `reference`, each row gets an additional first score of 0 and therefore one more result.
void softmax(const double* x, double* y, int64_t rows, int64_t columns, bool reference) {
  const int64_t made = columns + (reference ? 1 : 0);
  for (int64_t r = 0; r < rows; r++) {
    const double* row = x + r * columns;
    double *to = y + r * made, top = reference ? 0 : -INFINITY;
    for (int64_t i = 0; i < columns; i++) top = std::max(top, row[i]);
    if (!std::isfinite(top)) top = 0;
    if (reference) *to++ = -top;
    for (int64_t i = 0; i < columns; i++) to[i] = row[i] - top;
  }
  vector::double_loops().exponentials(y, rows * made, 1);
  for (int64_t r = 0; r < rows; r++, y += made) {
    double sum = 0;
    for (int64_t i = 0; i < made; i++) sum += y[i];
    for (int64_t i = 0; i < made; i++) y[i] /= sum;
  }
}

Match match_link(const MatchCall& m) {
  const std::string_view mode = *m.call.text("mode");
  if (mode == "probit" || mode == "complement") return Match::no("this mode");
  const auto rows = ops::ml::has_rows(m.call);
  const ir::Shape& x = m.call.shape("x");
  if (!rows.ok() || !*rows || x.count() == 0) return Match::no("a single row");
  const int64_t count = x[0], columns = x.count() / count, made = m.outputs[0].shape().count() / count;
  KernelChoice c;
  c.kernel = "cpu.ml.link";
  c.tiles = (count + kLinkRows - 1) / kLinkRows;
  c.cost = cost_of(m, 20 * static_cast<double>(count * made), 16 * static_cast<double>(count * made));
  c.run = [=, in = static_cast<size_t>(m.call.arg_index("x")), logit = mode == "logit", plain = mode == "normalize",
           reference = mode == "softmax_with_reference"](const KernelArgs& args) -> Status {
    const int64_t first = args.begin * kLinkRows, n = std::min(args.end * kLinkRows, count) - first;
    const double* from = args.in[in].as<double>() + first * columns;
    double* to = args.out[0].as<double>() + first * made;
    if (logit)
      vector::double_loops().logistics(from, to, n * columns);
    else if (plain)
      vector::double_loops().normalize(from, to, n, columns);
    else
      softmax(from, to, n, columns, reference);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_ml_link() {
  static const KernelDef defs[] = {{.name = "cpu.ml.link", .ops = {"ml_link"}, .match = match_link}};
  return {210, defs};
}

}  // namespace moka::devices::cpu
