// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

/// Reading an image at real coordinates: affine and resample.
namespace moka::ops {

/// Interpolates bilinearly at column `px` and row `py` of a `w` by `h` plane that begins at element `base`. Elements
/// outside are `pad`.
template <class Read>
double bilinear_or(const Read& read, int64_t base, int64_t h, int64_t w, double py, double px, double pad) {
  if (!(px > -1 && py > -1 && px < static_cast<double>(w) && py < static_cast<double>(h))) return pad;
  const double fx = std::floor(px), fy = std::floor(py), ax = px - fx, ay = py - fy;
  const auto x0 = static_cast<int64_t>(fx), y0 = static_cast<int64_t>(fy);
  auto at = [&](int64_t y, int64_t x) { return x >= 0 && x < w && y >= 0 && y < h ? read(base + y * w + x) : pad; };
  // A neighbor with weight 0 must not be read, because it may be infinite.
  auto mix = [](double a, double b, double part) { return part == 0 ? a : a * (1 - part) + b * part; };
  return mix(mix(at(y0, x0), at(y0, x0 + 1), ax), mix(at(y0 + 1, x0), at(y0 + 1, x0 + 1), ax), ay);
}

/// Reflects `v` into [low, high], then clamps it to [0, n - 1]. Non-finite values become 0.
inline double reflected(double v, double low, double high, int64_t n) {
  const double span = high - low;
  if (!(span > 0) || !std::isfinite(v)) return 0;
  const double away = std::abs(v - low), rest = std::fmod(away, span);
  const bool back = std::fmod(std::floor(away / span), 2.0) != 0;
  return std::clamp(back ? high - rest : low + rest, 0.0, static_cast<double>(n - 1));
}

}  // namespace moka::ops
