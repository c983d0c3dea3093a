// SPDX-License-Identifier: Apache-2.0
#include "measuring/repair.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "measuring/predict.h"
#include "moka/input_sizes.h"

namespace moka::measuring {
namespace {

/// Tolerance for kernels that add in another order.
constexpr double kRounding = 1e-4;

/// The numbers of an output that are compared. Labels are left out because they follow from probabilities, and pixels
/// because they may round either way.
std::vector<double> numbers_of(const FeatureValue& value) {
  std::vector<double> out;
  if (const auto* array = std::get_if<MultiArray>(&value))
    for (int64_t i = 0; i < array->count(); ++i) out.push_back(array->at(i));
  if (const auto* number = std::get_if<double>(&value)) out.push_back(*number);
  if (const auto* dictionary = std::get_if<Dictionary>(&value)) {
    for (const auto& [key, number] : dictionary->strings) out.push_back(number);
    for (const auto& [key, number] : dictionary->ints) out.push_back(number);
  }
  return out;
}

/// Whether two values are the same. If not, `p` and `q` are the first numbers that differ.
bool are_same(const FeatureValue& a, const FeatureValue& b, double& p, double& q) {
  const std::vector<double> x = numbers_of(a), y = numbers_of(b);
  bool same = x.size() == y.size() && a.index() == b.index();
  for (size_t i = 0; same && i < x.size(); ++i) {
    p = x[i], q = y[i];
    same = p == q || (std::isnan(p) && std::isnan(q)) || std::abs(p - q) <= kRounding * std::max(1.0, std::abs(p));
  }
  return same;
}

}  // namespace

void check_repair(const std::string& path, const ModelSource& repaired, const lint::Options& options) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_only;
  c.function_name = options.function;
  const Model before = Model::load(path, c), after = repaired.load(c);
  std::vector<Features> inputs = options.inputs;
  if (inputs.empty()) inputs.push_back(inputs_within(before.random_inputs(options.seed), options.ranges, options.seed));
  for (const Features& features : inputs) {
    const Features a = predict_once(before, features), b = predict_once(after, features);
    for (const auto& [name, value] : a) {
      double p = 0, q = 0;
      if (are_same(value, b.at(name), p, q)) continue;
      double one = 0, other = 0;
      if (are_same(value, predict_once(before, features).at(name), one, other))
        throw Exception(ErrorKind::internal,
                        cat("output '", name, "': the repaired model answers ", q, ", expected ", p));
    }
  }
}

}  // namespace moka::measuring
