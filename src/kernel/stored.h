// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/tensor.h"

namespace moka::kernel {

/// A constant as the model's file stores it. Element i of the constant is (v - offset) * scale. Without a table, v is
/// element i of `elements`. With a table, element i of `elements` is an index, and v is that entry of the table.
/// Scales, offsets and tables apply to blocks of equal size: every axis of their shapes divides that of `elements`. The
/// table has one more axis, for the entries of a block.
struct StoredConstant {
  /// The fields below are empty because they cannot describe the constant (sparse, palettes of vectors), but all its
  /// elements are float16.
  bool is_half = false;
  std::optional<int64_t> nonzero;  ///< if it is sparse, how many elements may differ from zero; only with is_half
  ir::Tensor elements;  ///< fp16, fp32, or integers of 1 to 8 bits, in the constant's shape; points into the file
  ir::Tensor table;     ///< fp32; empty handle: none
  ir::Tensor scale;     ///< fp32; empty handle: 1
  ir::Tensor offset;    ///< fp32, of scale's shape; empty handle: 0
  /// As in files of neural networks: numbers may be unaligned, and integers of fewer than 8 bits begin in the highest
  /// bits of a byte. `elements` may only be read as bytes.
  bool in_network_format = false;

  /// The program rounds (v - offset) * rounding->scale to float16 and multiplies the result by the factor of its row,
  /// [rows, 1, ...]. A kernel may compute (v - offset) * scale in float32 instead.
  struct Rounding {
    ir::Tensor scale;   ///< of the shape of StoredConstant::scale
    ir::Tensor factor;  ///< fp32; empty handle: 1
  };
  std::optional<Rounding> rounding;
};

/// An activation that was quantized to 8 bits and is kept as fp32. Every element is an integer times `scale`. The
/// integers range from low to low + 255, which includes 0.
struct QuantizedActivation {
  float scale = 1;
  int low = 0;
};

}  // namespace moka::kernel
