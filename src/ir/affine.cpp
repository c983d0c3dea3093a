// SPDX-License-Identifier: Apache-2.0
#include "ir/affine.h"

namespace moka::ir {

Affine affine_of_norm(const std::vector<double>& mean, const std::vector<double>& variance,
                      const std::vector<double>& gamma, const std::vector<double>& beta, double epsilon) {
  const size_t n = mean.size();
  Affine a{std::vector<double>(n), std::vector<double>(n)};
  for (size_t i = 0; i < n; i++) {
    a.scale[i] = gamma[i] / std::sqrt(variance[i] + epsilon);
    a.shift[i] = beta[i] - mean[i] * a.scale[i];
  }
  return a;
}

Affine affine_of_numbers(std::string_view op, std::vector<double> numbers, bool number_first) {
  if (op == "mul") return {std::move(numbers), {0}};
  if (op == "real_div") {
    for (double& v : numbers) v = 1 / v;
    return {std::move(numbers), {0}};
  }
  if (op == "sub" && !number_first)
    for (double& v : numbers) v = -v;
  return {{op == "sub" && number_first ? -1.0 : 1.0}, std::move(numbers)};
}

}  // namespace moka::ir
