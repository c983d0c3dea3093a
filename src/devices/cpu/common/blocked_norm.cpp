// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/blocked_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

using vector::loops;

BlockedNorm::BlockedNorm(const ir::Shape& x, int64_t groups, int64_t block, double epsilon)
    : images_(x[0]),
      channels_(x[1]),
      of_group_(x[1] / groups),
      block_(block),
      pixels_(x.count(2, x.rank())),
      blocks_((x[1] + block - 1) / block),
      unit_(std::lcm(of_group_, block) / block),
      units_((blocks_ + unit_ - 1) / unit_),
      epsilon_(epsilon) {}

std::pair<int64_t, int64_t> BlockedNorm::run(const float* x, const float* gamma, const float* beta, float* y,
                                             int64_t tile) const {
  constexpr int64_t kMost = 16;  // lanes
  constexpr int64_t kFew = 64;   // pixels per partial sum in single precision
  const int64_t begin = tile % units_ * unit_, end = std::min(begin + unit_, blocks_);
  const int64_t image = tile / units_ * blocks_, step = pixels_ * block_, first_group = begin * block_ / of_group_;
  const int lanes = static_cast<int>(block_);
  // One entry per group of the tile. There are no more groups than lanes.
  double sums[kMost] = {}, squares[kMost] = {}, means[kMost];
  float centers[kMost], of_lanes[kMost];
  const auto group_of = [&](int64_t block, int64_t lane) {
    return static_cast<size_t>((block * block_ + lane) / of_group_ - first_group);
  };
  const auto some = [&](int64_t block) { return std::min(block_, channels_ - block * block_); };
  const double n = static_cast<double>(of_group_ * pixels_);
  for (int64_t b = begin; b < end; b++)
    for (int64_t p = 0; p < pixels_; p += kFew) {
      loops().sum_pixels(x + (image + b) * step + p * block_, std::min(kFew, pixels_ - p), lanes, of_lanes);
      for (int64_t i = 0; i < some(b); i++) sums[group_of(b, i)] += static_cast<double>(of_lanes[i]);
    }
  for (int64_t g = 0; g < kMost; g++) {
    means[g] = sums[g] / n;
    centers[g] = static_cast<float>(means[g]);
  }
  float center[kMost] = {};
  for (int64_t b = begin; b < end; b++) {
    for (int64_t i = 0; i < some(b); i++) center[i] = centers[group_of(b, i)];
    for (int64_t p = 0; p < pixels_; p += kFew) {
      loops().square_pixels(x + (image + b) * step + p * block_, std::min(kFew, pixels_ - p), lanes, center, of_lanes);
      for (int64_t i = 0; i < some(b); i++) squares[group_of(b, i)] += static_cast<double>(of_lanes[i]);
    }
  }
  for (int64_t b = begin; b < end; b++) {
    float scale[kMost] = {}, shift[kMost] = {};
    std::fill_n(center, kMost, 0.0f);
    for (int64_t i = 0; i < some(b); i++) {
      const int64_t channel = b * block_ + i;
      const size_t g = group_of(b, i);
      const double rest = means[g] - static_cast<double>(centers[g]);                       // error of the float center
      const double found = squares[g] / n - rest * rest, variance = found < 0 ? 0 : found;  // NaN is kept
      const double a = (gamma == nullptr ? 1.0 : static_cast<double>(gamma[channel])) / std::sqrt(variance + epsilon_);
      center[i] = centers[g];
      scale[i] = static_cast<float>(a);
      shift[i] = static_cast<float>((beta == nullptr ? 0.0 : static_cast<double>(beta[channel])) - rest * a);
    }
    loops().center_pixels(x + (image + b) * step, pixels_, lanes, center, scale, shift, y + (image + b) * step);
  }
  return {(image + begin) * step, (image + end) * step};
}

}  // namespace moka::devices::cpu
