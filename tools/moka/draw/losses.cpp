// SPDX-License-Identifier: Apache-2.0
#include "draw/losses.h"

#include <algorithm>
#include <cmath>

#include "text.h"

namespace moka::cli {

Plot plot_of(const LearningCurve& curve) {
  Plot plot;
  plot.right = curve.last();
  plot.top = curve.top();
  constexpr int marks = 4;
  for (int i = 0; i <= marks; ++i) plot.y_marks.push_back({plot.top * i / marks, format_number(plot.top * i / marks)});
  const double step = std::max(1.0, std::ceil(plot.right / 10));
  for (double x = 0; x <= plot.right; x += step) plot.x_marks.push_back({x, format_number(x)});
  Plot::Series mini_batches{"loss of a mini-batch", {100, 181, 246}, {}, true, 2};
  for (const auto& [x, loss] : curve.mini_batches) mini_batches.points.emplace_back(x, std::min(loss, plot.top));
  Plot::Series epochs{"mean of an epoch", {255, 183, 77}, {}};
  for (const auto& [x, loss] : curve.epochs) epochs.points.emplace_back(x, std::min(loss, plot.top));
  plot.series = {mini_batches, epochs};
  return plot;
}

}  // namespace moka::cli
