#pragma once

#include "ir/tensor.h"

namespace moka::kernel {

/// A constant as the model's file holds it. Element i is (c - offset) * scale, where c is element i of `codes`, or
/// with a table the entry of that number. Scales, offsets and tables hold for equal blocks of the tensor: each axis of
/// their shapes divides that of `codes`; the table has the entries of a block behind these axes.
struct StoredConstant {
  /// The file holds it in another way (sparse, vectors of palettes), but all its elements are float16: nothing below.
  bool is_half = false;
  ir::Tensor codes;   ///< fp16, fp32, or integers of 1 to 8 bits, of the tensor's shape; shares the file's memory
  ir::Tensor table;   ///< fp32; empty handle: none
  ir::Tensor scale;   ///< fp32; empty handle: 1
  ir::Tensor offset;  ///< fp32, of scale's shape; empty handle: 0
};

/// A tensor of fp32 all of whose elements are integers from low to low + 255, 0 among them, times `scale`: what was
/// quantized to 8 bits.
struct Codes {
  float scale = 1;
  int low = 0;
};

}  // namespace moka::kernel
