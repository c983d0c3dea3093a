#pragma once

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

inline void apply_all(std::span<const Activation> all, float* y, int64_t n) {
  for (const Activation& a : all) a.apply(y, y, n);
}

}  // namespace moka::devices::cpu
