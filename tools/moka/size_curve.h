// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace moka::cli {

/// Sizes of a model in bytes, and signal to noise in dB.
struct Curve {
  struct Point {
    double size, expected, measured;  ///< NaN: not measured
  };
  std::vector<Point> points;
  double chosen_size = 0, chosen = 0;
};

/// The bounds of what is drawn. Points without noise are above them.
struct CurveBounds {
  double least_size = 0, most_size = 0, least = 0, most = 0;
};
CurveBounds bounds_of(const Curve& curve);

/// A chart for a terminal: '.' expected, 'o' measured, '@' chosen.
std::string curve_text(const Curve& curve);

}  // namespace moka::cli
