// SPDX-License-Identifier: Apache-2.0
#include "draw/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text.h"

namespace moka::cli {

Plot plot_of(const Curve& curve) {
  const CurveBounds bounds = bounds_of(curve);
  const auto clamped = [&](double db) { return std::clamp(db, bounds.least, bounds.most); };
  Plot plot;
  plot.left = bounds.least_size;
  plot.right = bounds.most_size;
  plot.bottom = bounds.least;
  plot.top = bounds.most;
  const double step = bounds.most - bounds.least > 100 ? 20 : 10;
  for (double db = bounds.least; db <= bounds.most; db += step)
    plot.y_marks.push_back({db, fmt::format("{:.0f} dB", db)});
  constexpr int marks = 5;
  for (int i = 0; i <= marks; ++i) {
    const double size = bounds.least_size + (bounds.most_size - bounds.least_size) * i / marks;
    plot.x_marks.push_back({size, format_bytes(size)});
  }
  Plot::Series expected{"expected", {100, 181, 246}, {}, true, 2}, measured{"measured", {255, 183, 77}, {}};
  for (const Curve::Point& p : curve.points) {
    if (!std::isnan(p.measured))
      measured.points.emplace_back(p.size, clamped(p.measured));
    else if (std::isfinite(p.expected))
      expected.points.emplace_back(p.size, clamped(p.expected));
  }
  plot.series = {
      expected, measured, {"written", {129, 199, 132}, {{curve.chosen_size, clamped(curve.chosen)}}, false, 7}};
  return plot;
}

}  // namespace moka::cli
