// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"

#include <algorithm>

#include "base/half.h"

namespace moka::devices::gpu {

namespace {

using Axis = ops::StridedCopy::Axis;

constexpr size_t kCopyRank = 7, kOtherRank = 5;
constexpr int64_t kSquare = 32, kLeastSide = 8;

struct CopyParams {
  uint32_t count, x_first, y_first;
  std::array<uint32_t, kCopyRank> size;
  std::array<int32_t, kCopyRank> x_step, y_step;
};

struct TransposeParams {
  uint32_t x_first, y_first, columns, rows, x_row, y_column, squares;
  std::array<uint32_t, kOtherRank> size;
  std::array<int32_t, kOtherRank> x_step, y_step;
};

/// The axes by their steps in the result, the innermost last.
std::vector<Axis> ordered(const ops::StridedCopy& grid) {
  std::vector<Axis> axes(grid.axes().begin(), grid.axes().end());
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to > b.to; });
  ops::StridedCopy sorted;
  for (const Axis& a : axes) sorted.add(a.size, a.to, a.from);
  const ops::StridedCopy merged = sorted.merged();
  return {merged.axes().begin(), merged.axes().end()};
}

std::string shader_of(std::string_view stem, size_t bytes) { return cat(stem, "_u", bytes * 8); }

/// Copies pairs of elements as one where all are aligned so.
void widen(std::vector<Axis>& axes, GridCopy& copy, size_t& bytes, Use& x, Use& y) {
  const auto even = [](int64_t v) { return v % 2 == 0; };
  while (bytes < 4) {
    Axis& inner = axes.back();
    if (inner.to != 1 || inner.from != 1 || !even(inner.size) || !even(copy.to) || !even(copy.from)) return;
    if (x.offset % (2 * bytes) != 0 || y.offset % (2 * bytes) != 0) return;
    if (!std::all_of(axes.begin(), axes.end() - 1, [&](const Axis& a) { return even(a.to) && even(a.from); })) return;
    for (Axis& a : axes) {
      a.to /= 2;
      a.from /= 2;
    }
    inner = {inner.size / 2, 1, 1};
    copy.to /= 2;
    copy.from /= 2;
    bytes *= 2;
  }
}

Status transpose(CommandRecorder& recorder, const GridCopy& copy, std::span<const Axis> axes, size_t rows,
                 size_t columns, size_t bytes, const Use& x, const Use& y) {
  const Axis &row = axes[rows], &column = axes[columns];
  TransposeParams p{u32(copy.from), u32(copy.to), u32(column.size), u32(row.size), u32(row.from), u32(column.to)};
  int64_t squares = (column.size + kSquare - 1) / kSquare * ((row.size + kSquare - 1) / kSquare);
  uint32_t rank = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    if (i == rows || i == columns) continue;
    p.size[rank] = u32(axes[i].size);
    p.x_step[rank] = static_cast<int32_t>(axes[i].from);
    p.y_step[rank++] = static_cast<int32_t>(axes[i].to);
    squares *= axes[i].size;
  }
  p.squares = u32(squares);
  return recorder.dispatch(shader_of("transpose", bytes), {rank}, {x, y}, p,
                           CommandRecorder::lines(static_cast<uint64_t>(squares) * 256));
}

}  // namespace

bool can_copy(const ops::StridedCopy& grid) { return ordered(grid).size() <= kCopyRank; }

Status record_copy(Recorder& to, const GridCopy& wanted, size_t bytes, Use x, Use y) {
  CommandRecorder& recorder = recorder_of(to);
  GridCopy copy = wanted;
  std::vector<Axis> axes = ordered(copy.grid);
  if (axes.size() == 1 && axes[0].to == 1 && axes[0].from == 1) {
    const size_t n = static_cast<size_t>(axes[0].size) * bytes;
    x.offset += static_cast<size_t>(copy.from) * bytes;
    y.offset += static_cast<size_t>(copy.to) * bytes;
    x.bytes = y.bytes = n;
    if (x.buffer != y.buffer || x.offset != y.offset) recorder.copy(x, y);
    return {};
  }
  widen(axes, copy, bytes, x, y);
  x.element = y.element = bytes;
  const auto row = std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.to == 1; });
  const auto column = std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.from == 1; });
  if (row != axes.end() && column != axes.end() && row != column && std::min(row->size, column->size) >= kLeastSide)
    return transpose(recorder, copy, axes, static_cast<size_t>(row - axes.begin()),
                     static_cast<size_t>(column - axes.begin()), bytes, x, y);
  CopyParams p{};
  uint64_t n = 1;
  for (size_t i = 0; i < axes.size(); i++) {
    const Axis& a = axes[axes.size() - 1 - i];
    p.size[i] = u32(a.size);
    p.x_step[i] = static_cast<int32_t>(a.from);
    p.y_step[i] = static_cast<int32_t>(a.to);
    n *= static_cast<uint64_t>(a.size);
  }
  p.count = static_cast<uint32_t>(n);
  p.x_first = u32(copy.from);
  p.y_first = u32(copy.to);
  return recorder.dispatch(shader_of("copy", bytes), {static_cast<uint32_t>(axes.size())}, {x, y}, p,
                           CommandRecorder::lines(n));
}

void record_whole(Recorder& recorder, const BufferView& x, const BufferView& y) {
  if (x.buffer != y.buffer || x.offset != y.offset) recorder_of(recorder).copy(Use::read(x), Use::write(y));
}

Element moved_element(const MatchCall& m, std::string_view params) {
  const ir::DType dtype = m.call.dtype(params);
  if (dtype != ir::DType::fp32) return *element_of(features_of(m), dtype);
  const auto first = static_cast<size_t>(m.call.arg_index(params));
  const size_t n = m.call.args(params).size();
  size_t half = 0, unknown = 0;
  for (size_t i = first; i < first + n; i++) {
    half += m.layouts[i].half;
    unknown += m.constant_args[i];
  }
  if (unknown == n) return float_element(m);
  if (half + unknown == n && half > 0 && (unknown == 0 || m.may_be_half(0))) return Element::f16;
  return half > 0 ? float_element(m) : Element::f32;
}

uint32_t bits_of(double v, Element e) {
  switch (e) {
    case Element::f32: return std::bit_cast<uint32_t>(static_cast<float>(v));
    case Element::f16: return half(v).bits;
    case Element::i32: return static_cast<uint32_t>(static_cast<int64_t>(v));
    case Element::u8: return v != 0;
  }
  return 0;
}

Status record_fill(Recorder& recorder, uint32_t bits, Element e, const BufferView& y) {
  struct Params {
    uint32_t count, value;
  };
  const auto n = static_cast<uint64_t>(y.shape.count());
  return recorder_of(recorder).dispatch(shader_of("fill", size_of(e)), {}, {Use::write(y)},
                                        Params{static_cast<uint32_t>(n), bits}, CommandRecorder::lines(n));
}

}  // namespace moka::devices::gpu
