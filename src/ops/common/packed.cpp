// SPDX-License-Identifier: Apache-2.0
#include "ops/common/packed.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/half.h"

namespace moka::ops {

namespace {

uint8_t bits_at(const uint8_t* p, int bits, int64_t i) {
  const int64_t bit = i * bits;
  const int shift = static_cast<int>(bit % 8);
  unsigned v = p[bit / 8];
  if (shift + bits > 8) v |= static_cast<unsigned>(p[bit / 8 + 1]) << 8;
  return static_cast<uint8_t>((v >> shift) & ((1u << bits) - 1));
}

/// Eight elements always fill whole bytes.
template <int kBits>
void unpack_groups(const uint8_t* p, int64_t groups, uint8_t* out) {
  for (int64_t g = 0; g < groups; g++, p += kBits, out += 8) {
    uint64_t w = 0;
    for (int b = 0; b < kBits; b++) w |= static_cast<uint64_t>(p[b]) << (8 * b);
    for (int k = 0; k < 8; k++) out[k] = static_cast<uint8_t>((w >> (k * kBits)) & ((1u << kBits) - 1));
  }
}

}  // namespace

void unpack_bits(const uint8_t* packed, int bits, int64_t first, int64_t n, uint8_t* out) {
  if (bits == 8) {
    if (n > 0) std::memcpy(out, packed + first, static_cast<size_t>(n));
    return;
  }
  while (n > 0 && first % 8 != 0) {
    *out++ = bits_at(packed, bits, first++);
    n--;
  }
  const int64_t groups = n / 8;
  const uint8_t* p = packed + first / 8 * bits;
  switch (bits) {
    case 1: unpack_groups<1>(p, groups, out); break;
    case 2: unpack_groups<2>(p, groups, out); break;
    case 3: unpack_groups<3>(p, groups, out); break;
    case 4: unpack_groups<4>(p, groups, out); break;
    case 6: unpack_groups<6>(p, groups, out); break;
    default: break;
  }
  for (int64_t i = groups * 8; i < n; i++) out[i] = bits_at(packed, bits, first + i);
}

int64_t count_bits(const uint8_t* mask, int64_t first, int64_t n) {
  int64_t found = 0;
  const int64_t end = first + n;
  auto bit = [&](int64_t i) { return (mask[i / 8] >> (i % 8)) & 1; };
  while (first < end && first % 8 != 0) found += bit(first++);
  for (; first + 64 <= end; first += 64) {
    uint64_t w;
    std::memcpy(&w, mask + first / 8, 8);
    found += std::popcount(w);
  }
  while (first < end) found += bit(first++);
  return found;
}

void load_floats(const TensorView& t, int64_t first, int64_t n, float* out) {
  auto convert = [&](const auto* p) {
    for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(p[first + i]);
  };
  switch (t.dtype) {
    case DType::fp32:
      if (n > 0) std::memcpy(out, t.as<float>() + first, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::fp16: return half_to_float(t.as<uint16_t>() + first, out, static_cast<size_t>(n));
    case DType::int8: return convert(t.as<int8_t>());
    case DType::uint8: return convert(t.as<uint8_t>());
    case DType::int32: return convert(t.as<int32_t>());
    case DType::int4:
    case DType::uint4: {
      const int flip = t.dtype == DType::int4 ? 8 : 0;
      uint8_t bytes[256];
      for (int64_t at = 0; at < n; at += 256) {
        const int64_t m = std::min<int64_t>(256, n - at);
        unpack_bits(t.as<uint8_t>(), 4, first + at, m, bytes);
        for (int64_t i = 0; i < m; i++) out[at + i] = static_cast<float>((bytes[i] ^ flip) - flip);
      }
      return;
    }
    default:
      for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(load_f64(t, first + i));
  }
}

void store_floats(const TensorView& t, int64_t first, int64_t n, const float* in) {
  if (n <= 0) return;
  if (t.dtype == DType::fp32) {
    std::memcpy(t.as<float>() + first, in, static_cast<size_t>(n) * sizeof(float));
  } else if (t.dtype == DType::fp16) {
    float_to_half(in, t.as<uint16_t>() + first, static_cast<size_t>(n));
  } else {
    for (int64_t i = 0; i < n; i++) store_f64(t, first + i, static_cast<double>(in[i]));
  }
}

BlockRuns::BlockRuns(const Shape& shape, const Shape& groups) {
  for (int i = 0; i < groups.rank(); i++)
    if (groups[i] > 1) rank_ = i + 1;
  run_ = shape.count(rank_, shape.rank());
  const auto steps = groups.strides();
  for (int i = 0; i < rank_; i++) {
    size_[i] = groups[i];
    block_[i] = shape[i] / groups[i];
    step_[i] = steps[static_cast<size_t>(i)];
  }
  if (rank_ > 0) {
    run_ *= block_[rank_ - 1];
    block_[rank_ - 1] = 1;
  }
  left_ = run_;
}

/// at_[i] counts elements of axis i, the last one whole blocks.
void BlockRuns::next() {
  left_ = run_;
  for (int i = rank_ - 1; i >= 0; i--) {
    at_[i]++;
    if (at_[i] % block_[i] == 0) group_ += step_[i];
    if (at_[i] < size_[i] * block_[i]) return;
    group_ -= step_[i] * size_[i];
    at_[i] = 0;
  }
}

Status check_blocks(const OpCall& call, std::string_view param, const Shape& shape, const Shape& groups) {
  if (shape.rank() != groups.rank()) return call.error(param, cat("blocks of rank ", shape.rank()), cat(groups));
  for (int i = 0; i < shape.rank(); i++) {
    if (groups[i] < 1 || shape[i] % groups[i] != 0) {
      return call.error(param, cat("a divisor of ", shape[i], " entries at axis ", i), cat(groups[i]));
    }
  }
  return {};
}

void shift_and_scale(const TensorView& out, const TensorView& data, int64_t first, int64_t n, BlockRuns& runs,
                     const float* scales, const float* offsets) {
  constexpr int64_t kChunk = 1024;
  float buffer[kChunk];
  for (int64_t at = 0; at < n; at += kChunk) {
    const int64_t chunk = std::min(kChunk, n - at);
    load_floats(data, first + at, chunk, buffer);
    for (int64_t i = 0; i < chunk;) {
      const int64_t m = std::min(runs.left(), chunk - i);
      const float scale = scales[runs.group()], offset = offsets != nullptr ? offsets[runs.group()] : 0;
      for (int64_t k = i; k < i + m; k++) buffer[k] = (buffer[k] - offset) * scale;
      runs.advance(m);
      i += m;
    }
    store_floats(out, first + at, chunk, buffer);
  }
}

}  // namespace moka::ops
