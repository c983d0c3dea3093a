// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/common.h"
#include "ops/common/strided.h"

/// Helpers of the operations that only move elements.
namespace moka::devices::gpu {

/// A strided copy that begins at element `from` of the source and element `to` of the destination.
struct GridCopy {
  ops::StridedCopy grid;
  int64_t to = 0, from = 0;
};

/// Whether the shaders take as many dimensions as `grid` has.
bool can_copy(const ops::StridedCopy& grid);
/// Copies `x` to `y` by the driver's copy command, in squares through shared memory, or element by element. `bytes`:
/// the size of an element. Precondition: can_copy(copy.grid).
Status record_copy(Recorder& recorder, const GridCopy& copy, size_t bytes, Use x, Use y);
/// Copies a whole dense tensor. Does nothing if both are the same memory.
void record_whole(Recorder& recorder, const BufferView& x, const BufferView& y);

/// How an operation that only moves elements holds them: as its inputs `params` are held, if all are held the same way.
/// Constants are held as the result is.
Element moved_element(const MatchCall& m, std::string_view params);
/// The bits of `v` as an element of type `e`.
uint32_t bits_of(double v, Element e);
/// Sets all elements of `y`.
Status record_fill(Recorder& recorder, uint32_t bits, Element e, const BufferView& y);

constexpr const char* kManyDimensions = "a copy along more than 7 dimensions";

}  // namespace moka::devices::gpu
