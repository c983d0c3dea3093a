// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "devices/cpu/common/compressed_weights.h"

namespace moka::devices::cpu {

/// Weights that are packed by panels of columns. Where the file has float16, they are packed as float16.
class PanelWeights {
 public:
  /// Elements [first, first + n) of the weights, in `room` or elsewhere.
  using Read = std::function<const float*(int64_t first, int64_t n, float* room)>;
  /// Writes the panel that begins at element `at` with `pack`, which gets room for its `n` floats.
  using Put = std::function<void(int64_t at, int64_t n, const std::function<void(float* to)>& pack)>;
  using Fill = std::function<void(const Read& read, const Put& put)>;

  /// Makes `c` pack the input before its first run. `key` is as in PrepareContext::pack.
  static std::shared_ptr<const PanelWeights> of(KernelChoice& c, const MatchCall& m, int arg, std::string key,
                                                int64_t count, Fill fill);

  /// The same for compressed weights of `columns` columns in all panels.
  static std::shared_ptr<const PanelWeights> of_compressed(KernelChoice& c, const MatchCall& m, int arg,
                                                           std::string key,
                                                           std::shared_ptr<const CompressedWeights> compressed,
                                                           int64_t columns,
                                                           std::function<void(CompressedWeights::Packer&)> pack);

  /// Floats that n elements take when they are widened.
  int64_t room(int64_t n) const { return half_ || compressed_ ? n : 0; }
  bool is_half() const { return half_; }
  int64_t element() const { return compressed_ ? 1 : half_ ? sizeof(uint16_t) : sizeof(float); }
  /// Rows [first, first + rows) of the panel of `width` columns that begins at element `at`: where they are packed, or
  /// widened to `to`. Not for float16.
  const float* floats(int64_t at, int64_t width, int64_t first, int64_t rows, float* to) const;
  template <class T = std::byte>
  const T* at(int64_t i) const {
    return reinterpret_cast<const T*>(bytes_.get() + i * element());
  }

 private:
  bool half_ = false;
  std::shared_ptr<const CompressedWeights> compressed_;
  int64_t columns_ = 0;
  std::shared_ptr<const std::byte> bytes_;
};

}  // namespace moka::devices::cpu
