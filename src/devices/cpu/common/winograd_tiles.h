#pragma once

#include <algorithm>
#include <optional>

#include "devices/cpu/common/common.h"
#include "devices/cpu/common/stored_value.h"
#include "devices/cpu/common/winograd_blocking.h"

namespace moka::devices::cpu {

/// The weights as the file stores them.
struct Taps {
  const std::optional<kernel::StoredConstant>& stored;
  const float* weight;  ///< used if `stored` is empty

  /// Weights [first, first + n).
  void read(int64_t first, int64_t n, float* to) const {
    if (stored)
      stored_values(*stored, first, n, to);
    else
      std::copy_n(weight + first, n, to);
  }
};

/// Transforms a row of tiles of an input slice of one block of channels. A null `plane` is a slice of zeros. `again`:
/// at 2^-64 of its size, which cannot overflow, and with zeros for infinities and NaN.
void transform_row(const WinogradBlocking& p, const float* plane, const Row& r, bool again, float* v);

/// Corrects one block of channels of adjacent tiles. The transforms have spread an infinity or a NaN of the input, or
/// an overflow, over whole tiles. Returns true if finite inputs are to be transformed again.
bool correct_tiles(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r,
                   int64_t group, float* y);

/// Corrects tiles for which correct_tiles returned true. `made` are the products of the tiles transformed again.
void correct_again(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r,
                   int64_t group, const float* made, float* y);

}  // namespace moka::devices::cpu
