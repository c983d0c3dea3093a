#pragma once

#include "devices/vulkan/kernels/common.h"
#include "ops/common/strided.h"

/// What operations share that move elements without computing.
namespace moka::devices::vulkan {

/// A copy of elements from `from` on to elements from `to` on.
struct GridCopy {
  ops::StridedCopy grid;
  int64_t to = 0, from = 0;
};

/// Whether shaders take so many dimensions.
bool can_copy(const ops::StridedCopy& grid);
/// Copies `x` to `y`, whose elements have `bytes` bytes: by the driver's copy, in squares through shared memory, or
/// element by element. Precondition: can_copy(copy.grid).
Status record_copy(Recorder& recorder, const GridCopy& copy, size_t bytes, Use x, Use y);
/// The dense copy of a whole tensor, unless both are the same place.
void record_whole(Recorder& recorder, const BufferView& x, const BufferView& y);

/// How values that only move are held: as they arrive, when all of `params` arrive alike. Constants come as the result
/// is wanted.
Element moved_element(const MatchCall& m, std::string_view params);
/// Bits of a number as an element.
uint32_t bits_of(double v, Element e);
/// Sets all elements of `y`.
Status record_fill(Recorder& recorder, uint32_t bits, Element e, const BufferView& y);

constexpr const char* kManyDimensions = "a copy along more than 7 dimensions";

}  // namespace moka::devices::vulkan
