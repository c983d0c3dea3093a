// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/common/packed.h"

/// Weights stored as indices into tables of values ("palettes").
namespace moka::ops {

inline constexpr DTypes kLutIndices =
    any_of(DType::uint1, DType::uint2, DType::uint3, DType::uint4, DType::uint6, DType::uint8);
inline constexpr DTypes kLutValues = any_of(DType::int8, DType::uint8, DType::fp16, DType::fp32);

/// Tables of shape [groups..., entries, vector], indices of shape `indices`.
struct Lut {
  Shape groups;
  int64_t entries = 0, vector = 1;
  int axis = 0;  ///< axis of the indices along which vectors are laid out
  Shape dense;   ///< shape of the expanded tensor
};
/// Checks `lut` and `vector_axis` of the iOS18 operations against indices of this shape and type.
Result<Lut> check_lut(const OpCall& call, const Shape& indices, DType index_type);

/// Expands `n` packed indices of `bits` bits with scalar tables, one per group of `runs`.
void expand_lut(const TensorView& out, const uint8_t* packed, int bits, int64_t n, const TensorView& lut,
                int64_t entries, BlockRuns& runs);
/// Expands indices of shape `indices` with tables of vectors.
void expand_vectors(const TensorView& out, const uint8_t* packed, int bits, const Shape& indices, const TensorView& lut,
                    const Lut& info);

/// Calls fn(T*, const T*) with out's and lut's elements as unsigned integers of their size.
template <class Fn>
void with_element_size(const TensorView& out, const TensorView& lut, Fn fn) {
  switch (bits(lut.dtype)) {
    case 8: return fn(out.as<uint8_t>(), lut.as<const uint8_t>());
    case 16: return fn(out.as<uint16_t>(), lut.as<const uint16_t>());
    case 32: return fn(out.as<uint32_t>(), lut.as<const uint32_t>());
    case 64: return fn(out.as<uint64_t>(), lut.as<const uint64_t>());
    default: return;
  }
}

}  // namespace moka::ops
