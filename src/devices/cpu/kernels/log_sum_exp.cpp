// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/single_axis.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/reduction.h"

namespace moka::devices::cpu {

namespace {

using vector::loops;
using vector::Reduce;

constexpr int64_t kExpBlock = 512;  // elements of a row, or columns, at once

/// The logarithm of a sum of e^x, from the largest x and the sum of e^(x - top). Without a finite top there is nothing
/// to add, unless an element is NaN.
float log_of_sum(float top, double sum) {
  return std::isinf(top) ? top : static_cast<float>(static_cast<double>(top) + std::log(sum));
}

float log_sum_exp_row(const float* x, int64_t n) {
  alignas(64) float e[kExpBlock];
  const auto top = static_cast<float>(loops().reduce(Reduce::max, x, n));
  if (std::isinf(top)) return top;
  double sum = 0;
  for (int64_t i = 0; i < n; i += kExpBlock) sum += loops().exp_minus(x + i, &top, 0, e, std::min(kExpBlock, n - i));
  return log_of_sum(top, sum);
}

/// The same for `columns` columns of n rows, `step` floats apart.
void log_sum_exp_columns(const float* x, int64_t n, int64_t step, int64_t columns, float* y) {
  alignas(64) float top[kExpBlock], shift[kExpBlock], e[kExpBlock];
  double sums[kExpBlock] = {};
  std::copy_n(x, columns, top);
  for (int64_t k = 1; k < n; k++) loops().accumulate(Reduce::max, top, x + k * step, columns);
  for (int64_t i = 0; i < columns; i++) shift[i] = std::isinf(top[i]) ? 0 : top[i];
  for (int64_t k = 0; k < n; k++) {
    loops().exp_minus(x + k * step, shift, 1, e, columns);
    for (int64_t i = 0; i < columns; i++) sums[i] += static_cast<double>(e[i]);
  }
  for (int64_t i = 0; i < columns; i++) y[i] = log_of_sum(top[i], sums[i]);
}

Match match_log_sum_exp(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  auto axes = ops::reduced_axes(m.call, x.rank());
  if (!axes.ok()) return Match::no("axes that are not constant");
  const auto axis = single_axis(x, *axes);
  if (!axis) return Match::no("axes that are not adjacent");
  const int64_t outer = axis->outer, n = axis->n, inner = axis->inner, parts = (inner + kExpBlock - 1) / kExpBlock;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.log_sum_exp";
  c.tiles = outer * parts;
  c.epilogues = m.epilogue.size();
  constexpr double kEach = 20;  // floating-point operations of an exponential
  c.cost = cost_of(m, kEach * static_cast<double>(x.count()), traffic(m));
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t column = t % parts * kExpBlock, columns = std::min(kExpBlock, inner - column);
      const float* from = args.in[in].as<float>() + t / parts * n * inner + column;
      float* to = args.out[0].as<float>() + t / parts * inner + column;
      if (inner == 1)
        *to = log_sum_exp_row(from, n);
      else
        log_sum_exp_columns(from, n, inner, columns, to);
      apply_all(after, to, columns);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_log_sum_exp() {
  static const KernelDef defs[] = {
      {.name = "cpu.log_sum_exp", .ops = {"reduce_log_sum_exp"}, .match = match_log_sum_exp}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
