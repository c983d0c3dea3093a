#pragma once

#include <array>
#include <optional>

#include "devices/cpu/kernels/common.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

/// A function of one element with its parameters.
struct Activation {
  vector::Unary f;
  float a = 0, b = 0;

  void apply(const float* x, float* y, int64_t n) const { vector::loops().unary(f, x, y, n, a, b); }
};

/// Of an operation with one input `x`; nullopt when there is none, or a parameter is not known.
std::optional<Activation> activation_of(const ir::OpCall& call);
/// The operations that may have one.
std::vector<std::string_view> activation_operations();
/// Every epilogue has one.
std::vector<Activation> activations_of(std::span<const ir::Epilogue> epilogues);

/// Least and largest values.
using Limits = std::array<float, 2>;
/// Takes the first one away if it only limits values.
std::optional<Limits> take_limits(std::vector<Activation>& all);

inline void apply_all(std::span<const Activation> all, float* y, int64_t n) {
  for (const Activation& a : all) a.apply(y, y, n);
}

/// What is left to do for elements [begin, end) of a blocked result: the addend (whole, in the same layout; nullptr:
/// none), the epilogues, zeros in padding channels.
void finish_blocked(const ir::Shape& shape, const float* addend, std::span<const Activation> after, float* y,
                    int64_t begin, int64_t end);
/// The channels of one group of a bias of `channels` values (nullptr: none), zeros behind them.
std::array<float, 16> bias_of_group(const float* bias, int64_t group, int64_t channels);

}  // namespace moka::devices::cpu
