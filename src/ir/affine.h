// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace moka::ir {

/// y = scale * x + shift per channel. A single entry stands for all channels.
struct Affine {
  std::vector<double> scale{1}, shift{0};

  static double at(const std::vector<double>& v, size_t i) { return v[v.size() == 1 ? 0 : i]; }
  bool scales() const {
    return std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1; });
  }
  bool shifts() const {
    return std::any_of(shift.begin(), shift.end(), [](double s) { return s != 0; });
  }
  bool finite() const {
    auto ok = [](double v) { return std::isfinite(v); };
    return std::all_of(scale.begin(), scale.end(), ok) && std::all_of(shift.begin(), shift.end(), ok);
  }
  /// The composition: first this, then `next`.
  Affine then(const Affine& next) const {
    const size_t n = std::max({scale.size(), shift.size(), next.scale.size(), next.shift.size()});
    Affine out{std::vector<double>(n), std::vector<double>(n)};
    for (size_t i = 0; i < n; i++) {
      out.scale[i] = at(scale, i) * at(next.scale, i);
      out.shift[i] = at(shift, i) * at(next.scale, i) + at(next.shift, i);
    }
    return out;
  }
};

/// What a batch norm with these statistics does to each channel.
Affine affine_of_norm(const std::vector<double>& mean, const std::vector<double>& variance,
                      const std::vector<double>& gamma, const std::vector<double>& beta, double epsilon);
/// What "add", "mul", "sub" and "real_div" do with one number for each channel, or for all. `number_first`: subtracts
/// from the number; only for "sub".
Affine affine_of_numbers(std::string_view op, std::vector<double> numbers, bool number_first);

}  // namespace moka::ir
