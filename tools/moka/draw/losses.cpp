// SPDX-License-Identifier: Apache-2.0
#include "draw/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "draw/canvas.h"
#include "draw/panels.h"
#include "text.h"

namespace moka::cli {

io::Picture drawn_curve(const LearningCurve& curve) {
  constexpr double width = 960, height = 540, left = 80, right = 24, top = 48, bottom = 56, small = 14;
  constexpr Color mini_batch{100, 181, 246}, epoch{255, 183, 77};
  const double most = curve.top(), last = curve.last();
  Canvas canvas(static_cast<size_t>(width), static_cast<size_t>(height), kBackground);
  const auto x_of = [&](double x) { return left + (width - left - right) * x / last; };
  const auto y_of = [&](double loss) { return height - bottom - (height - top - bottom) * std::min(loss / most, 1.0); };
  constexpr int marks = 4;
  for (int i = 0; i <= marks; ++i) {
    const double loss = most * i / marks;
    const std::string text = format_number(loss);
    canvas.line({{left, y_of(loss)}, {width - right, y_of(loss)}}, 1, kDimText.faded(0.3));
    canvas.text(left - 8 - canvas.text_width(text, small), y_of(loss) - small / 2, text, kDimText, small);
  }
  const double step = std::max(1.0, std::ceil(last / 10));
  for (double x = 0; x <= last; x += step) {
    const std::string text = format_number(x);
    canvas.text(x_of(x) - canvas.text_width(text, small) / 2, height - bottom + 10, text, kDimText, small);
  }
  std::vector<std::pair<double, double>> line;
  for (const auto& [x, loss] : curve.mini_batches) line.emplace_back(x_of(x), y_of(loss));
  canvas.line(line, 2, mini_batch);
  for (const auto& [x, loss] : curve.epochs) canvas.disc(x_of(x), y_of(loss), 4, epoch);
  double x = left;
  for (const auto& [name, color] : {std::pair{"loss of a mini-batch", mini_batch}, {"mean of an epoch", epoch}}) {
    canvas.disc(x + 6, top / 2, 5, color);
    canvas.text(x + 18, top / 2 - kLine / 2, name, kText, kLine);
    x += 40 + canvas.text_width(name, kLine);
  }
  return canvas.picture();
}

}  // namespace moka::cli
