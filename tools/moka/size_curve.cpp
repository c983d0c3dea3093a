// SPDX-License-Identifier: Apache-2.0
#include "size_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text.h"

namespace moka::cli {

CurveBounds bounds_of(const Curve& curve) {
  CurveBounds out{INFINITY, 0, INFINITY, -INFINITY};
  for (const Curve::Point& p : curve.points) {
    out.least_size = std::min(out.least_size, p.size);
    out.most_size = std::max(out.most_size, p.size);
    for (const double v : {p.expected, p.measured, curve.chosen})
      if (std::isfinite(v)) out.least = std::min(out.least, v), out.most = std::max(out.most, v);
  }
  if (!(out.least < out.most)) out.least = std::isfinite(out.least) ? out.least - 1 : 0, out.most = out.least + 2;
  if (out.least_size >= out.most_size) out.most_size = out.least_size + 1;
  constexpr double step = 10;
  out.least = std::floor(out.least / step) * step;
  out.most = std::ceil(out.most / step) * step;
  return out;
}

std::string curve_text(const Curve& curve) {
  constexpr int width = 60, height = 12;
  const CurveBounds bounds = bounds_of(curve);
  std::vector<std::string> rows(height + 1, std::string(width + 1, ' '));
  const auto put = [&](double size, double db, char mark) {
    if (std::isnan(db)) return;
    const double x = (size - bounds.least_size) / (bounds.most_size - bounds.least_size);
    const double y = (std::clamp(db, bounds.least, bounds.most) - bounds.least) / (bounds.most - bounds.least);
    rows[static_cast<size_t>(height - std::lround(y * height))][static_cast<size_t>(std::lround(x * width))] = mark;
  };
  for (const Curve::Point& p : curve.points) put(p.size, p.expected, '.');
  for (const Curve::Point& p : curve.points) put(p.size, p.measured, 'o');
  put(curve.chosen_size, curve.chosen, '@');
  std::string out;
  for (int y = 0; y <= height; ++y) {
    constexpr int every = 3;
    const double db = bounds.most - (bounds.most - bounds.least) * y / height;
    std::string row = rows[static_cast<size_t>(y)];
    row.erase(row.find_last_not_of(' ') + 1);
    out += fmt::format("{:>8} |{}\n", y % every == 0 ? fmt::format("{:.0f} dB", db) : "", row);
  }
  const std::string low = format_bytes(bounds.least_size), high = format_bytes(bounds.most_size);
  out += fmt::format("{:>8} +{}\n", "", std::string(width + 1, '-'));
  out += fmt::format("{:>10}{}{:>{}}\n", "", low, high, width + 1 - static_cast<int>(low.size()));
  return out + fmt::format("{:>10}. expected  o measured  @ written\n", "");
}

}  // namespace moka::cli
