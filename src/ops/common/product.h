// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

/// The matrix product behind the reference functions of convolution, linear, matmul and einsum.
namespace moka::ops {

namespace product_detail {

inline constexpr int kRows = 64;    ///< rows per block of the left operand
inline constexpr int kCols = 64;    ///< columns per block of the right operand
inline constexpr int kDepth = 128;  ///< depth per block
inline constexpr int kQuad = 4;     ///< rows and columns per micro tile

inline void multiply_add(double& c, double a, double b) { c += a * b; }
inline void multiply_add(int64_t& c, int64_t a, int64_t b) {
  c = static_cast<int64_t>(static_cast<uint64_t>(c) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// c[4][4] += a[depth][4] * b[depth][4], where b has rows of kCols.
inline void micro(int64_t depth, const double* a, const double* b, double* c) {
  typedef double V __attribute__((vector_size(16), aligned(8), may_alias));
  V acc[kQuad][2];
  for (int r = 0; r < kQuad; ++r) {
    acc[r][0] = *reinterpret_cast<const V*>(c + r * kCols);
    acc[r][1] = *reinterpret_cast<const V*>(c + r * kCols + 2);
  }
  for (int64_t k = 0; k < depth; ++k, a += kQuad, b += kCols) {
    const V b0 = *reinterpret_cast<const V*>(b);
    const V b1 = *reinterpret_cast<const V*>(b + 2);
    for (int r = 0; r < kQuad; ++r) {
      const V s = {a[r], a[r]};
      acc[r][0] += s * b0;
      acc[r][1] += s * b1;
    }
  }
  for (int r = 0; r < kQuad; ++r) {
    *reinterpret_cast<V*>(c + r * kCols) = acc[r][0];
    *reinterpret_cast<V*>(c + r * kCols + 2) = acc[r][1];
  }
}

/// Integers wrap on overflow.
inline void micro(int64_t depth, const int64_t* a, const int64_t* b, int64_t* c) {
  for (int64_t k = 0; k < depth; ++k, a += kQuad, b += kCols) {
    for (int r = 0; r < kQuad; ++r) {
      for (int j = 0; j < kQuad; ++j) {
        multiply_add(c[r * kCols + j], a[r], b[j]);
      }
    }
  }
}

/// A single row on the left, as in depthwise convolutions. Packing would gain nothing.
template <class Acc, class LoadA, class LoadB, class Store>
void single_row(int64_t cols, int64_t depth, LoadA& load_a, LoadB& load_b, Store& store) {
  alignas(64) Acc line[kCols] = {};
  alignas(64) Acc c[kCols];
  Acc a[kDepth];
  for (int64_t j = 0; j < cols; j += kCols) {
    const int64_t width = std::min<int64_t>(kCols, cols - j);
    std::fill(c, c + kCols, Acc{});
    std::fill(line + width, line + kCols, Acc{});
    for (int64_t k = 0; k < depth; k += kDepth) {
      const int64_t deep = std::min<int64_t>(kDepth, depth - k);
      load_a(0, k, deep, a);
      for (int64_t q = 0; q < deep; ++q) {
        load_b(k + q, j, width, line);
        for (int t = 0; t < kCols; ++t) multiply_add(c[t], a[q], line[t]);
      }
    }
    store(0, j, width, c);
  }
}

}  // namespace product_detail

/// c(i, j) = sum over k < depth of a(i, k) * b(k, j) for i < rows and j < cols, in Acc (double or int64_t).
///
///   load_a(i, k, n, Acc* to)  writes a(i, k) .. a(i, k + n - 1);            n <= 128
///   load_b(k, j, n, Acc* to)  writes b(k, j) .. b(k, j + n - 1);            n <= 64
///   store(i, j, n, Acc* c)    takes c(i, j) .. c(i, j + n - 1), each once, and may change them; n <= 64
///
/// Works in blocks of about 160 KiB on the stack and never allocates. With depth 0 every c is 0.
template <class Acc, class LoadA, class LoadB, class Store>
void blocked_product(int64_t rows, int64_t cols, int64_t depth, LoadA&& load_a, LoadB&& load_b, Store&& store) {
  using namespace product_detail;
  if (rows == 1) return single_row<Acc>(cols, depth, load_a, load_b, store);
  alignas(64) Acc a[kRows * kDepth];  // [row / 4][k][row % 4]
  alignas(64) Acc b[kDepth * kCols];
  alignas(64) Acc c[kRows * kCols];
  Acc line[kDepth];
  for (int64_t j = 0; j < cols; j += kCols) {
    const int64_t width = std::min<int64_t>(kCols, cols - j);
    const int64_t wide = (width + kQuad - 1) / kQuad * kQuad;
    for (int64_t i = 0; i < rows; i += kRows) {
      const int64_t height = std::min<int64_t>(kRows, rows - i);
      const int64_t high = (height + kQuad - 1) / kQuad * kQuad;
      std::fill(c, c + high * kCols, Acc{});
      for (int64_t k = 0; k < depth; k += kDepth) {
        const int64_t deep = std::min<int64_t>(kDepth, depth - k);
        for (int64_t r = 0; r < high; ++r) {
          Acc* to = a + (r / kQuad) * kQuad * deep + r % kQuad;
          if (r < height) {
            load_a(i + r, k, deep, line);
            for (int64_t q = 0; q < deep; ++q) to[q * kQuad] = line[q];
          } else {
            for (int64_t q = 0; q < deep; ++q) to[q * kQuad] = Acc{};
          }
        }
        // If the whole depth fits a block, the panel of b is loaded once for all blocks of rows.
        if (i == 0 || depth > kDepth) {
          for (int64_t q = 0; q < deep; ++q) {
            load_b(k + q, j, width, b + q * kCols);
            std::fill(b + q * kCols + width, b + q * kCols + wide, Acc{});
          }
        }
        for (int64_t r = 0; r < high; r += kQuad) {
          for (int64_t w = 0; w < wide; w += kQuad) micro(deep, a + r * deep, b + w, c + r * kCols + w);
        }
      }
      for (int64_t r = 0; r < height; ++r) store(i + r, j, width, c + r * kCols);
    }
  }
}

}  // namespace moka::ops
