// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace moka {

/// IEEE binary16 storage; arithmetic is done after converting to float. Rounds to nearest, ties to even.
struct half {
  uint16_t bits = 0;

  half() = default;
  explicit half(float f) : bits(from_float(f)) {}
  explicit half(double d) : bits(from_float(round_to_odd(d))) {}
  operator float() const { return to_float(bits); }

  static uint16_t from_float(float f);
  static float to_float(uint16_t h);

 private:
  static float round_to_odd(double d);
};

/// bfloat16 storage: the upper half of a binary32.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float f);
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

#if defined(__x86_64__)
/// Whether the processor has F16C.
bool converts_halves();
#endif
/// Bulk conversions; use the processor's instructions where it has them.
void half_to_float(const uint16_t* in, float* out, size_t n);
void float_to_half(const float* in, uint16_t* out, size_t n);

}  // namespace moka
