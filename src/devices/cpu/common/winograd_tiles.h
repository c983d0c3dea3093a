// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "devices/cpu/common/common.h"
#include "devices/cpu/common/winograd_blocking.h"
#include "devices/cpu/common/winograd_weights.h"

namespace moka::devices::cpu {

/// Transforms a row of tiles of an input slice of one block of channels. A null `plane` is a slice of zeros. `again`:
/// at 2^-64 of its size, which cannot overflow, and with zeros for infinities and NaN.
void transform_row(const WinogradBlocking& p, const float* plane, const Row& r, bool again, float* v);

/// Which windows of a chunk's outputs hold infinities and NaN. They are looked up when a row of tiles needs it first.
class NonFiniteWindows {
 public:
  /// `memory`: chunk * (1 + pixels()) bytes.
  NonFiniteWindows(const WinogradBlocking& p, const float* x, uint8_t* memory) : p_(p), x_(x), memory_(memory) {}
  /// Forgets the last chunk.
  void begin_chunk() { std::fill_n(memory_, p_.chunk, uint8_t{0}); }
  /// A byte for each output of a row of tiles, line by line: 0 if its window is finite, else a sum of 1, and 2 if it
  /// holds a NaN.
  const uint8_t* of(const Row& r);

 private:
  void look(const Row& r, uint8_t* to) const;

  const WinogradBlocking& p_;
  const float* x_;
  uint8_t* memory_;  ///< whether a row is known, for each tile; then the bytes of its outputs
};

/// Sums of a block of channels that are computed directly, for many outputs at a time. They are complete after
/// finish().
class DirectSums {
 public:
  DirectSums(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, int64_t group)
      : p_(p), x_(x), weights_(weights), bias_(bias), group_(group) {}

  /// Output [i, j] of a row of tiles, which begins at y. `sees` is its byte of NonFiniteWindows.
  void add(const Row& r, int64_t i, int64_t j, uint8_t sees, float* y);
  void finish();

  /// One output to sum: its image, where its window begins in x, and where it is written.
  struct Output {
    int64_t image, front, top, left;
    float* y;
  };

 private:
  static constexpr int64_t kMost = 64;

  const WinogradBlocking& p_;
  const float* x_;
  const Taps& weights_;
  const float* bias_;
  int64_t group_, count_ = 0;
  Output outputs_[kMost];
};

/// Corrects one block of channels of adjacent tiles. The transforms have spread an infinity or a NaN of the input, or
/// an overflow, over whole tiles. Returns true, and changes nothing, if inputs are to be transformed again.
bool correct_tiles(const WinogradBlocking& p, NonFiniteWindows& non_finite, DirectSums& direct, const Row& r, float* y);

/// Corrects tiles for which correct_tiles returned true. `made` are the products of the tiles transformed again.
void correct_again(const WinogradBlocking& p, NonFiniteWindows& non_finite, DirectSums& direct, const Row& r,
                   const float* bias, const float* made, float* y);

}  // namespace moka::devices::cpu
