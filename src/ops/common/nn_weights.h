#pragma once

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

void dequantize(const QuantizedWeights& w, float* out);

}  // namespace moka::ops
