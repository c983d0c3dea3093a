// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/network_util.h"

namespace moka::conformance {

using namespace ir;

namespace {

double largest(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.count(); ++i) {
    const double v = load_f64(t.view(), i);
    most = std::isfinite(v) ? std::max(most, std::fabs(v)) : std::numeric_limits<double>::infinity();
  }
  return most;
}

double farthest(const Tensor& a, const Tensor& b) {
  double most = 0;
  for (int64_t i = 0; i < a.count(); ++i)
    most = std::max(most, std::fabs(load_f64(a.view(), i) - load_f64(b.view(), i)));
  return most;
}

/// Empty when no element differs by more than `allowed`.
std::string far(const Tensor& got, const Tensor& expected, double allowed) {
  if (!(got.shape() == expected.shape())) return cat("expected ", expected.shape(), ", got ", got.shape());
  for (int64_t i = 0; i < got.count(); ++i) {
    const double x = load_f64(got.view(), i), y = load_f64(expected.view(), i);
    if (!(std::fabs(x - y) <= allowed))
      return cat("element ", i, ": expected ", y, ", got ", x, " (allowed ", allowed, ")");
  }
  return {};
}

}  // namespace

std::string network_disagreement(const Case& c) {
  constexpr double kFloat32 = 2e-5, kFloat16 = 1e-3, kMovements = 16, kStored = 16 * 4096, kRoundings = 4,
                   kCodes = 0.05;
  constexpr double kMost = 1e4;  // beyond this, sums overflow float16 or lose digits
  const std::vector<Column> all = columns();
  const bool halves = c.program.find("fp16") != std::string::npos;
  // A value almost halfway between two codes may round to either one. Later parts carry the step on.
  const double codes = c.program.find(" = quantize(") == std::string::npos ? 0 : kCodes;
  const auto declared = all[0].run(c);
  if (!declared.ok())
    return declared.error().code() == ErrorCode::out_of_budget ? "" : cat("reference: ", declared.error().to_string());
  auto base = halves ? widened(c) : Result<Case>(c);
  if (!base.ok()) return cat("widened: ", base.error().to_string());
  const auto expected = all[0].run(*base);
  if (!expected.ok()) return cat("widened reference: ", expected.error().to_string());
  const auto moves = movements(*base, *expected);
  if (!moves.ok()) return cat("moved: ", moves.error().to_string());
  for (const Column& column : all) {
    if (column.name == "reference") continue;
    const auto got = column.run(c);
    if (!got.ok()) return cat(column.name, ": ", got.error().to_string());
    if (got->size() != expected->size())
      return cat(column.name, ": ", got->size(), " results, expected ", expected->size());
    for (size_t i = 0; i < got->size(); ++i) {
      const Tensor& e = (*expected)[i];
      if (column.exact && !((*got)[i] == (*declared)[i])) return cat(column.name, ", result ", i, ": other bits");
      // Columns without passes round to float16 after each operation, and `e` does not.
      if (column.exact || (halves && (!column.widened || column.name == "vulkan"))) continue;
      if (e.count() == 0) continue;
      const double most = largest(e), moves_by = *std::max_element((*moves)[i].begin(), (*moves)[i].end());
      if (most > kMost || !(moves_by <= 1)) continue;
      // Vulkan stores float16 results as float16. Its error may be a few times that of the first column, which rounds
      // after each operation.
      const bool stored = halves && column.name.find("vulkan") == 0;
      const double relative =
          stored || (*got)[i].dtype() == DType::fp16 ? kFloat16 : std::max(column.least_tolerance, kFloat32);
      const double moved =
          stored ? std::max(kStored * moves_by, kRoundings * farthest((*declared)[i], e)) : kMovements * moves_by;
      const std::string differs = far((*got)[i], e, (relative + codes) * std::max(1.0, most) + moved);
      if (!differs.empty()) return cat(column.name, ", result ", i, ": ", differs);
    }
  }
  return {};
}

}  // namespace moka::conformance
