// SPDX-License-Identifier: Apache-2.0
#include "ops/common/nn_weights.h"

#include <algorithm>
#include <cstring>

#include "base/copy.h"
#include "base/half.h"

namespace moka::ops {

void load_unaligned(const std::byte* from, bool half, int64_t n, float* to) {
  if (!half) return copy_bytes(to, from, static_cast<size_t>(n) * sizeof(float));
  constexpr int64_t kBlock = 256;
  uint16_t block[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const auto count = static_cast<size_t>(std::min(kBlock, n - i));
    std::memcpy(block, from + i * 2, count * 2);
    half_to_float(block, to + i, count);
  }
}

void unpack_high_first(const uint8_t* packed, int bits, int64_t first, int64_t n, uint8_t* out) {
  if (n <= 0) return;
  if (bits == 8) {
    std::memcpy(out, packed + first, static_cast<size_t>(n));
    return;
  }
  const uint32_t mask = (1u << bits) - 1;
  for (int64_t i = first; i < first + n; i++) {
    const int64_t bit = i * bits;
    const int used = static_cast<int>(bit % 8) + bits;
    uint32_t window = static_cast<uint32_t>(packed[bit / 8]) << 8;
    if (used > 8) window |= packed[bit / 8 + 1];
    *out++ = static_cast<uint8_t>((window >> (16 - used)) & mask);
  }
}

void dequantize(const QuantizedWeights& w, float* out) {
  constexpr int64_t kBlock = 256;
  uint8_t codes[kBlock];
  for (int64_t i = 0; i < w.count; i++) {
    if (i % kBlock == 0) unpack_high_first(w.data, w.bits, i, std::min(kBlock, w.count - i), codes);
    const uint8_t code = codes[i % kBlock];
    if (!w.lut.empty()) {
      out[i] = w.lut[code];
      continue;
    }
    size_t channel = static_cast<size_t>(i / w.inner % w.channels);
    float q = w.is_signed ? static_cast<float>(static_cast<int8_t>(code)) : static_cast<float>(code);
    float scale = w.scale.empty() ? 1.0f : w.scale[w.scale.size() == 1 ? 0 : channel];
    float bias = w.bias.empty() ? 0.0f : w.bias[w.bias.size() == 1 ? 0 : channel];
    out[i] = scale * q + bias;
  }
}

}  // namespace moka::ops
