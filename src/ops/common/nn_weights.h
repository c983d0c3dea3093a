#pragma once

#include <cstdint>
#include <span>

namespace moka::ops {

/// Numbers of a neural network's quantised weight. Codes of `bits` bits follow each other from the highest bit of each
/// byte on. A number is lut[code], or scale * code + bias with one value for all or one per channel.
struct QuantizedWeights {
  const uint8_t* data = nullptr;  ///< (count * bits + 7) / 8 bytes
  bool is_signed = false;         ///< codes of 8 bits are int8
  int bits = 8;                   ///< 1..8
  int64_t count = 0;
  int64_t channels = 1, inner = 1;     ///< channel of element i: i / inner % channels
  std::span<const float> scale, bias;  ///< empty, 1 or `channels` values; empty bias: 0
  std::span<const float> lut;          ///< empty or 2^bits values
};

void dequantize(const QuantizedWeights& w, float* out);

}  // namespace moka::ops
