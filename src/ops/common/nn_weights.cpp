#include "ops/common/nn_weights.h"

namespace moka::ops {

void dequantize(const QuantizedWeights& w, float* out) {
  const uint32_t mask = (1u << w.bits) - 1;
  for (int64_t i = 0; i < w.count; i++) {
    uint32_t code;
    if (w.bits == 8) {
      code = w.data[i];
    } else {
      uint64_t bit = static_cast<uint64_t>(i) * static_cast<uint64_t>(w.bits);
      uint64_t byte = bit / 8;
      int used = static_cast<int>(bit % 8) + w.bits;
      uint32_t window = static_cast<uint32_t>(w.data[byte]) << 8;
      if (used > 8) window |= w.data[byte + 1];
      code = (window >> (16 - used)) & mask;
    }
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
