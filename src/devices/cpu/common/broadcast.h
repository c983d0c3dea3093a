// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "devices/cpu/common/common.h"

namespace moka::devices::cpu {

/// A loop nest over an output and up to three inputs, which may be broadcast along some dimensions. Merges dimensions
/// where possible. Along the last one every input advances by 1 or stays.
class Broadcast {
 public:
  static constexpr int kInputs = 3;

  /// Adds an inner dimension. Steps are in elements.
  void add(int64_t size, std::array<int64_t, kInputs> steps);
  /// Up to kInputs row-major inputs, broadcast to a row-major output.
  static Broadcast of(const ir::Shape& out, std::span<const ir::Shape> in);

  int step(int input) const {
    return rank_ == 0 ? 1 : static_cast<int>(steps_[static_cast<size_t>(rank_ - 1)][static_cast<size_t>(input)]);
  }
  /// Calls f(offset in the output, {offset in each input}, n) for runs that cover the output's elements [begin, end).
  template <class F>
  void each(int64_t begin, int64_t end, F f) const {
    const int64_t row = rank_ == 0 ? 1 : sizes_[static_cast<size_t>(rank_ - 1)];
    while (begin < end) {
      int64_t rest = begin / row, at = begin % row;
      const int64_t n = std::min(row - at, end - begin);
      std::array<int64_t, kInputs> from{};
      for (size_t k = 0; k < kInputs; k++) from[k] = rank_ == 0 ? 0 : at * steps_[static_cast<size_t>(rank_ - 1)][k];
      for (int d = rank_ - 2; d >= 0; d--) {
        const auto i = static_cast<size_t>(d);
        const int64_t index = rest % sizes_[i];
        rest /= sizes_[i];
        for (size_t k = 0; k < kInputs; k++) from[k] += index * steps_[i][k];
      }
      f(begin, from, n);
      begin += n;
    }
  }

 private:
  static constexpr size_t kRank = 10;
  int rank_ = 0;
  std::array<int64_t, kRank> sizes_{};
  std::array<std::array<int64_t, kInputs>, kRank> steps_{};
};

}  // namespace moka::devices::cpu
