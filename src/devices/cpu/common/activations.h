// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "devices/cpu/common/common.h"
#include "devices/cpu/vector/loops.h"
#include "kernel/epilogue.h"

namespace moka::devices::cpu {

/// An elementwise function and its parameters.
struct Activation {
  vector::Unary f;
  float a = 0, b = 0;

  void apply(const float* x, float* y, int64_t n) const { vector::loops().unary(f, x, y, n, a, b); }
};

/// The function of an operation with one input `x`. nullopt: it has none, or a parameter is unknown.
std::optional<Activation> activation_of(const ir::OpCall& call);
/// The operations for which activation_of() may return a function.
std::vector<std::string_view> activation_operations();
/// The function of each epilogue.
std::vector<Activation> activations_of(std::span<const ir::Epilogue> epilogues);

using kernel::Limits;
/// Removes the first function and returns its limits if it only clamps.
std::optional<Limits> take_limits(std::vector<Activation>& all);

inline void apply_all(std::span<const Activation> all, float* y, int64_t n) {
  for (const Activation& a : all) a.apply(y, y, n);
}

/// Finishes elements [begin, end) of a blocked result: adds the addend (in the same layout; nullptr: none), applies the
/// epilogues and zeroes padding channels.
void finish_blocked(const ir::Shape& shape, const float* addend, std::span<const Activation> after, float* y,
                    int64_t begin, int64_t end);
/// Where a kernel that sums products finds its operands, and what it does to the sums.
struct FusedSum {
  explicit FusedSum(const MatchCall& m);
  /// For the kernels of src/devices/cpu/vector; nullptr: none.
  const float* clamp() const { return limits ? limits->data() : nullptr; }
  /// Whether finish_blocked() is needed.
  bool is_finished_later() const { return addend >= 0 || !after.empty(); }

  size_t in;                      ///< input `x`
  int bias, addend;               ///< inputs; -1: none
  std::vector<Activation> after;  ///< without the function whose limits the sums get
  std::optional<Limits> limits;   ///< nullopt if there is an addend, which comes first
};

/// One block of a bias of `channels` values, with zeros after the last; nullptr: all zeros.
std::array<float, 16> bias_of_group(const float* bias, int64_t group, int64_t channels);

}  // namespace moka::devices::cpu
