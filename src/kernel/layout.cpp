// SPDX-License-Identifier: Apache-2.0
#include "kernel/layout.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/copy.h"
#include "base/half.h"
#include "base/transpose.h"

namespace moka::kernel {

std::string to_string(Layout layout) {
  const char* half = layout.half ? " fp16" : "";
  switch (layout.kind) {
    case Layout::Kind::row_major: return cat("row_major", half);
    case Layout::Kind::channels_last: return cat("channels_last", half);
    case Layout::Kind::channel_blocked: return cat("blocked", static_cast<int>(layout.block), half);
  }
  return "?";
}

Result<size_t> storage_bytes(ir::DType dtype, const ir::Shape& shape, Layout layout) {
  if (layout.half) dtype = ir::DType::fp16;
  if (layout.kind != Layout::Kind::channel_blocked) return ir::storage_bytes(dtype, shape);
  ir::Shape padded = shape;
  int64_t b = layout.block;
  padded[1] = (shape[1] + b - 1) / b * b;
  return ir::storage_bytes(dtype, padded);
}

namespace {

/// Element strides of (image, channel, pixel); channel_inner for the position inside a block.
struct Steps {
  int64_t image, channel, inner, pixel, block;
  int64_t at(int64_t c) const { return c / block * channel + c % block * inner; }
};

Steps steps_of(const ir::Shape& s, Layout l) {
  int64_t channels = s[1], pixels = s.count(2, s.rank());
  switch (l.kind) {
    case Layout::Kind::row_major: return {channels * pixels, pixels, 0, 1, 1};
    case Layout::Kind::channels_last: return {channels * pixels, 1, 0, channels, 1};
    case Layout::Kind::channel_blocked: {
      int64_t b = l.block, groups = (channels + b - 1) / b;
      return {groups * b * pixels, pixels * b, 1, b, b};
    }
  }
  return {};
}

/// Number of channels that are converted together.
int64_t group_of(Layout from, Layout to) { return std::max({int64_t{from.block}, int64_t{to.block}, int64_t{16}}); }

template <class Out, class In>
Out stored_as(In v) {
  if constexpr (std::is_same_v<In, float> && std::is_same_v<Out, uint16_t>)
    return moka::half::from_float(v);
  else if constexpr (std::is_same_v<In, uint16_t> && std::is_same_v<Out, float>)
    return moka::half::to_float(v);
  else
    return v;
}

/// Converts `n` elements that lie side by side on both sides.
template <class In, class Out>
void convert_run(const In* in, Out* out, int64_t n) {
  if constexpr (std::is_same_v<In, float> && std::is_same_v<Out, uint16_t>)
    float_to_half(in, out, static_cast<size_t>(n));
  else if constexpr (std::is_same_v<In, uint16_t> && std::is_same_v<Out, float>)
    half_to_float(in, out, static_cast<size_t>(n));
  else
    std::copy_n(in, n, out);
}

/// Whether four channels lie side by side, the first of which is a multiple of four.
bool has_fours(const Steps& s) { return s.block % 4 == 0 || s.channel == 1; }

/// Converts channels [first, last) of one image, a few pixels of all these channels at a time.
template <class In, class Out>
void convert(const In* in, const Steps& from, Out* out, const Steps& to, int64_t first, int64_t last, int64_t pixels) {
  if (from.pixel == 1 && to.pixel == 1) {
    for (int64_t c = first; c < last; c++) convert_run(in + from.at(c), out + to.at(c), pixels);
    return;
  }
  constexpr bool words = std::is_same_v<In, uint32_t> && std::is_same_v<Out, uint32_t>;
  const bool to_columns = from.pixel == 1 && has_fours(to), to_lines = to.pixel == 1 && has_fours(from);
  constexpr int64_t kTile = 64;
  for (int64_t p0 = 0; p0 < pixels; p0 += kTile) {
    const int64_t n = std::min(kTile, pixels - p0);
    for (int64_t c = first, some; c < last; c += some) {
      const In* a = in + from.at(c) + p0 * from.pixel;
      Out* b = out + to.at(c) + p0 * to.pixel;
      some = words && last - c >= 4 && (to_columns || to_lines) ? 4 : 1;
      if (some == 1)
        for (int64_t p = 0; p < n; p++) b[p * to.pixel] = stored_as<Out>(a[p * from.pixel]);
      else if (to_columns)
        lines_to_columns(a, from.channel, b, to.pixel, n);
      else
        columns_to_lines(a, from.pixel, b, to.channel, n);
    }
  }
}

}  // namespace

int64_t convert_tiles(const ir::Shape& shape, Layout from, Layout to) {
  if (shape.rank() < 3) return 1;
  const int64_t group = group_of(from, to);
  return shape[0] * ((shape[1] + group - 1) / group);
}

namespace {

/// Converts tiles [begin, end) of tensors that are stored as In and Out.
template <class In, class Out>
void convert_tensor(const ir::TensorView& in, Layout from, const ir::TensorView& out, Layout to, int64_t begin,
                    int64_t end) {
  if (in.shape.rank() < 3) {
    convert_run(in.as<In>(), out.as<Out>(), in.count());
    return;
  }
  const Steps a = steps_of(in.shape, from), b = steps_of(in.shape, to);
  const int64_t channels = in.shape[1], pixels = in.shape.count(2, in.shape.rank());
  const int64_t group = group_of(from, to), groups = (channels + group - 1) / group;
  for (int64_t t = begin; t < end; t++) {
    const int64_t n = t / groups, first = t % groups * group, last = std::min(channels, first + group);
    Out* y = out.as<Out>() + n * b.image;
    convert(in.as<In>() + n * a.image, a, y, b, first, last, pixels);
    for (int64_t c = last; c % b.block != 0; c++)
      for (int64_t p = 0; p < pixels; p++) y[b.at(c) + p * b.pixel] = Out{};
  }
}

}  // namespace

void convert_layout(const ir::TensorView& in, Layout from, const ir::TensorView& out, Layout to, int64_t begin,
                    int64_t end) {
  if (from.half != to.half) {
    if (to.half)
      convert_tensor<float, uint16_t>(in, from, out, to, begin, end);
    else
      convert_tensor<uint16_t, float>(in, from, out, to, begin, end);
    return;
  }
  const int64_t bytes = from.half ? 2 : ir::bits(in.dtype) / 8;
  if (in.shape.rank() < 3) {
    copy_bytes(out.data, in.data, static_cast<size_t>(in.count() * bytes));
    return;
  }
  switch (bytes) {
    case 1: convert_tensor<uint8_t, uint8_t>(in, from, out, to, begin, end); break;
    case 2: convert_tensor<uint16_t, uint16_t>(in, from, out, to, begin, end); break;
    case 4: convert_tensor<uint32_t, uint32_t>(in, from, out, to, begin, end); break;
    default: convert_tensor<uint64_t, uint64_t>(in, from, out, to, begin, end); break;
  }
}

}  // namespace moka::kernel
