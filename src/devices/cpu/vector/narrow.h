#pragma once

#include <cstdint>

/// Sums of products with neighbouring pixels in a vector, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

struct Narrow {
  int64_t lanes;  ///< floats of a vector
  int64_t block;  ///< channels of a block
  int64_t most;   ///< sums that are made at once

  /// Pixels of a block of channels as a plane for each: to[c * step + p] = from[p * block + c].
  void (*split)(const float* from, int64_t pixels, float* to, int64_t step);

  /// Adds to sums[o * step + p], for o < outs <= most and p < pixels, the sum over lines i and taps t of
  /// lines[i][p + t * dilation] * w[(i * taps + t) * outs + o]. pixels: whole vectors.
  void (*add)(const float* const* lines, int64_t count, int64_t taps, int64_t dilation, const float* w, int64_t outs,
              int64_t pixels, float* sums, int64_t step);
};

/// For this processor.
const Narrow& narrow();

const Narrow& narrow_base();
const Narrow& narrow_avx2();
const Narrow& narrow_avx512();

}  // namespace moka::devices::cpu::vector
