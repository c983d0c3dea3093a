// SPDX-License-Identifier: Apache-2.0
#include "learning_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text.h"

namespace moka::cli {

double LearningCurve::last() const {
  return mini_batches.empty() ? 1 : std::max(1.0, std::ceil(mini_batches.back().first));
}

double LearningCurve::top() const {
  double most = 0;
  for (const auto& [x, loss] : mini_batches) most = std::max(most, loss);
  if (!(most > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(most)));
  for (const double digit : {1.0, 2.0, 4.0, 6.0, 8.0})
    if (most <= digit * power) return digit * power;
  return 10 * power;
}

std::string curve_text(const LearningCurve& curve) {
  constexpr int width = 60, height = 12, every = 3;
  const double top = curve.top(), last = curve.last();
  std::vector<std::string> rows(height + 1, std::string(width + 1, ' '));
  const auto put = [&](const std::pair<double, double>& point, char mark) {
    const double y = std::clamp(point.second / top, 0.0, 1.0);
    rows[static_cast<size_t>(height - std::lround(y * height))]
        [static_cast<size_t>(std::lround(point.first / last * width))] = mark;
  };
  for (const auto& point : curve.mini_batches) put(point, '.');
  for (const auto& point : curve.epochs) put(point, 'o');
  std::string out;
  for (int y = 0; y <= height; ++y) {
    std::string& row = rows[static_cast<size_t>(y)];
    row.erase(row.find_last_not_of(' ') + 1);
    out += fmt::format("{:>8} |{}\n", y % every == 0 ? format_number(top * (height - y) / height) : "", row);
  }
  const std::string high = plural(static_cast<int64_t>(last), "epoch");
  out += fmt::format("{:>8} +{}\n", "", std::string(width + 1, '-'));
  out += fmt::format("{:>10}0{:>{}}\n", "", high, width);
  return out + fmt::format("{:>10}. loss of a mini-batch  o mean of an epoch\n", "");
}

}  // namespace moka::cli
