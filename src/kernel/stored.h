#pragma once

#include "ir/tensor.h"

namespace moka::kernel {

/// A constant as the model's file holds it. Element i of the constant is (v - offset) * scale. Here v is element i of
/// `elements`, or with a table the table's entry at that index. Scales, offsets and tables each hold for blocks of
/// equal size: every axis of their shapes divides that of `elements`. The table has one more axis, the entries of a
/// block.
struct StoredConstant {
  /// The fields below cannot describe the constant (sparse, palettes of vectors) and are empty, but all its elements
  /// are float16.
  bool is_half = false;
  ir::Tensor elements;  ///< fp16, fp32, or integers of 1 to 8 bits, in the constant's shape; points into the file
  ir::Tensor table;     ///< fp32; empty handle: none
  ir::Tensor scale;     ///< fp32; empty handle: 1
  ir::Tensor offset;    ///< fp32, of scale's shape; empty handle: 0
};

/// An activation that was quantized to 8 bits and is kept as fp32. Every element is an integer times `scale`. The
/// integers are from low to low + 255, a range that holds 0.
struct QuantizedActivation {
  float scale = 1;
  int low = 0;
};

}  // namespace moka::kernel
