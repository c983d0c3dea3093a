// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace moka::ops {

/// A quantized weight of a neural network: unsigned integers q of `bits` bits, packed from the highest bit of each byte
/// down. A weight is lut[q], or scale * q + bias with a scale and bias for all weights or per channel.
struct QuantizedWeights {
  const uint8_t* data = nullptr;  ///< (count * bits + 7) / 8 bytes
  bool is_signed = false;         ///< integers of 8 bits are signed
  int bits = 8;                   ///< 1..8
  int64_t count = 0;
  int64_t channels = 1, inner = 1;     ///< channel of element i: i / inner % channels
  std::span<const float> scale, bias;  ///< empty, 1 or `channels` values; empty bias: 0
  std::span<const float> lut;          ///< empty or 2^bits values
};

/// Reads `n` unaligned numbers of fp16 or fp32.
void load_unaligned(const std::byte* from, bool half, int64_t n, float* to);

void dequantize(const QuantizedWeights& w, float* out);

/// Unpacks elements [first, first + n) of unsigned integers of 1 to 8 bits, packed from the highest bit of each byte
/// down, to bytes.
void unpack_high_first(const uint8_t* packed, int bits, int64_t first, int64_t n, uint8_t* out);

}  // namespace moka::ops
