// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drawing/panels.h"
#include "moka/drawing.h"

namespace moka {
namespace drawing {
namespace {

constexpr double kPlotWidth = 960, kPlotHeight = 540, kLeft = 80, kRight = 24, kTop = 48, kBottom = 56, kSmall = 14;

void draw_names(Canvas& canvas, const std::vector<Plot::Series>& series) {
  double x = kLeft;
  for (const Plot::Series& s : series) {
    if (s.name.empty()) continue;
    canvas.disc(x + 6, kTop / 2, 5, s.color);
    canvas.text(x + 18, kTop / 2 - kLine / 2, s.name, kText, kLine);
    x += 40 + canvas.text_width(s.name, kLine);
  }
}

}  // namespace
}  // namespace drawing

Image draw_plot(const Plot& plot) {
  using namespace drawing;
  Canvas canvas(static_cast<int64_t>(kPlotWidth), static_cast<int64_t>(kPlotHeight), kBackground);
  const auto x_of = [&](double x) {
    return kLeft + (kPlotWidth - kLeft - kRight) * (x - plot.left) / (plot.right - plot.left);
  };
  const auto y_of = [&](double y) {
    return kPlotHeight - kBottom - (kPlotHeight - kTop - kBottom) * (y - plot.bottom) / (plot.top - plot.bottom);
  };
  for (const Plot::Mark& mark : plot.y_marks) {
    canvas.line({{kLeft, y_of(mark.at)}, {kPlotWidth - kRight, y_of(mark.at)}}, 1, faded(kDimText, 0.3));
    canvas.text(kLeft - 8 - canvas.text_width(mark.text, kSmall), y_of(mark.at) - kSmall / 2, mark.text, kDimText,
                kSmall);
  }
  for (const Plot::Mark& mark : plot.x_marks) {
    const double wide = canvas.text_width(mark.text, kSmall);
    canvas.text(std::min(x_of(mark.at) - wide / 2, kPlotWidth - wide - 4), kPlotHeight - kBottom + 10, mark.text,
                kDimText, kSmall);
  }
  for (const Plot::Series& series : plot.series) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [x, y] : series.points) points.emplace_back(x_of(x), y_of(y));
    if (series.is_line)
      canvas.line(points, series.size, series.color);
    else
      for (const auto& [x, y] : points) canvas.disc(x, y, series.size, series.color);
  }
  draw_names(canvas, plot.series);
  return canvas.image();
}

}  // namespace moka
