// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace moka::pictures {

/// The source pixels that are mixed into a target pixel; the weights add up to 1.
template <class T>
struct Taps {
  size_t first = 0;
  std::vector<T> weights;
};

/// The taps of each of `target` pixels: a triangle filter whose support grows when shrinking, with pixel centers at
/// half coordinates. The source has `source` pixels, of which [start, start + length) is resampled.
template <class T>
std::vector<Taps<T>> taps_for(size_t source, double start, double length, size_t target) {
  const double step = length / static_cast<double>(target);
  const double stretch = std::max(1.0, step);
  std::vector<Taps<T>> result(target);
  std::vector<double> weights;
  for (size_t i = 0; i < target; ++i) {
    const double center = start + (static_cast<double>(i) + 0.5) * step;
    const auto limit = static_cast<int64_t>(source);
    const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(std::floor(center - stretch)), 0, limit - 1);
    const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(center + stretch)), first + 1, limit);
    result[i].first = static_cast<size_t>(first);
    weights.clear();
    double sum = 0;
    for (int64_t s = first; s < last; ++s) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(s) + 0.5 - center) / stretch)));
      sum += weights.back();
    }
    for (double w : weights) result[i].weights.push_back(static_cast<T>(w / sum));
  }
  return result;
}

}  // namespace moka::pictures
