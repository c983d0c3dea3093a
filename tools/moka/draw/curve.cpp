// SPDX-License-Identifier: Apache-2.0
#include "draw/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "draw/canvas.h"
#include "draw/panels.h"
#include "text.h"

namespace moka::cli {

io::Picture drawn_curve(const Curve& curve) {
  constexpr double width = 960, height = 540, left = 80, right = 24, top = 48, bottom = 56;
  constexpr Color measured{255, 183, 77}, expected{100, 181, 246}, written{129, 199, 132};
  const CurveBounds bounds = bounds_of(curve);
  Canvas canvas(static_cast<size_t>(width), static_cast<size_t>(height), kBackground);
  const auto x_of = [&](double size) {
    return left + (width - left - right) * (size - bounds.least_size) / (bounds.most_size - bounds.least_size);
  };
  const auto y_of = [&](double db) {
    const double y = (std::clamp(db, bounds.least, bounds.most) - bounds.least) / (bounds.most - bounds.least);
    return height - bottom - (height - top - bottom) * y;
  };
  constexpr double small = 14, half = 2;
  const double step = bounds.most - bounds.least > 100 ? 20 : 10;
  for (double db = bounds.least; db <= bounds.most; db += step) {
    const std::string text = fmt::format("{:.0f} dB", db);
    canvas.line({{left, y_of(db)}, {width - right, y_of(db)}}, 1, kDimText.faded(0.3));
    canvas.text(left - 8 - canvas.text_width(text, small), y_of(db) - small / half, text, kDimText, small);
  }
  constexpr int marks = 5;
  for (int i = 0; i <= marks; ++i) {
    const double size = bounds.least_size + (bounds.most_size - bounds.least_size) * i / marks;
    const std::string text = format_bytes(size);
    const double wide = canvas.text_width(text, small);
    canvas.text(std::min(x_of(size) - wide / half, width - wide - 4), height - bottom + 10, text, kDimText, small);
  }
  std::vector<std::pair<double, double>> line;
  for (const Curve::Point& p : curve.points)
    if (std::isnan(p.measured) && std::isfinite(p.expected)) line.emplace_back(x_of(p.size), y_of(p.expected));
  canvas.line(line, 2, expected);
  for (const Curve::Point& p : curve.points)
    if (!std::isnan(p.measured)) canvas.disc(x_of(p.size), y_of(p.measured), 4, measured);
  canvas.disc(x_of(curve.chosen_size), y_of(curve.chosen), 7, written);
  double x = left;
  for (const auto& [name, color] : {std::pair{"expected", expected}, {"measured", measured}, {"written", written}}) {
    canvas.disc(x + 6, top / half, 5, color);
    canvas.text(x + 18, top / half - kLine / half, name, kText, kLine);
    x += 40 + canvas.text_width(name, kLine);
  }
  return canvas.picture();
}

}  // namespace moka::cli
