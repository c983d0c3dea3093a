// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace moka {

using FourWords = uint32_t __attribute__((vector_size(16), aligned(4), may_alias));

/// Turns the rows into columns.
inline void transpose(FourWords (&v)[4]) {
  const FourWords a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5),
                  b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
  const FourWords c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5),
                  d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

/// Moves four lines of n values to the columns of a matrix: to[i * to_step + j] becomes value i of line j. Values have
/// four bytes.
inline void lines_to_columns(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t n) {
  const auto* in = static_cast<const uint32_t*>(from);
  auto* out = static_cast<uint32_t*>(to);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    FourWords v[4];
    for (int64_t k = 0; k < 4; k++) v[k] = *reinterpret_cast<const FourWords*>(in + k * from_step + i);
    transpose(v);
    for (int64_t k = 0; k < 4; k++) *reinterpret_cast<FourWords*>(out + (i + k) * to_step) = v[k];
  }
  for (; i < n; i++)
    for (int64_t k = 0; k < 4; k++) out[i * to_step + k] = in[k * from_step + i];
}

/// The reverse: value i of line j becomes from[i * from_step + j].
inline void columns_to_lines(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t n) {
  const auto* in = static_cast<const uint32_t*>(from);
  auto* out = static_cast<uint32_t*>(to);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    FourWords v[4];
    for (int64_t k = 0; k < 4; k++) v[k] = *reinterpret_cast<const FourWords*>(in + (i + k) * from_step);
    transpose(v);
    for (int64_t k = 0; k < 4; k++) *reinterpret_cast<FourWords*>(out + k * to_step + i) = v[k];
  }
  for (; i < n; i++)
    for (int64_t k = 0; k < 4; k++) out[k * to_step + i] = in[i * from_step + k];
}

}  // namespace moka
