#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/program.h"

namespace moka::passes {

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

/// What `op` does to its operand `x`, per entry of dimension `axis`, which has `channels` entries. nullopt: something
/// else, or its constants exceed `max_bytes`.
std::optional<Affine> affine_of(const ir::Op& op, const ir::Value& x, int axis, int64_t channels, size_t max_bytes);

/// The entries of the constant vector given to `param`, or `channels` times `missing`.
std::optional<std::vector<double>> vector_of(const ir::Op& op, std::string_view param, size_t channels, double missing,
                                             size_t max_bytes);

}  // namespace moka::passes
