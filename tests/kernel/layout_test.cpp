// SPDX-License-Identifier: Apache-2.0
#include "kernel/layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace moka::kernel {
namespace {

using ir::DType;
using ir::Shape;

/// Where element (image, channel, pixel) of a tensor lies.
size_t position(Layout l, int64_t channels, int64_t pixels, int64_t n, int64_t c, int64_t p) {
  if (l.kind == Layout::Kind::row_major) return static_cast<size_t>((n * channels + c) * pixels + p);
  if (l.kind == Layout::Kind::channels_last) return static_cast<size_t>((n * pixels + p) * channels + c);
  const int64_t b = l.block, groups = (channels + b - 1) / b;
  return static_cast<size_t>(((n * groups + c / b) * pixels + p) * b + c % b);
}

/// The values count from 1, so that padding differs from all of them.
template <class T>
void check_conversion(DType dtype, Layout from, Layout to, int64_t channels, int64_t pixels) {
  const Shape shape{2, channels, pixels};
  const auto room = [&](Layout l) { return storage_bytes(dtype, shape, l).value() / sizeof(T); };
  std::vector<T> in(room(from)), expected(room(to)), out(room(to) + 1, T{99});
  for (int64_t n = 0, i = 1; n < 2; n++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t p = 0; p < pixels; p++, i++) {
        in[position(from, channels, pixels, n, c, p)] = static_cast<T>(i);
        expected[position(to, channels, pixels, n, c, p)] = static_cast<T>(i);
      }
  const ir::TensorView a{dtype, shape, in.data()}, b{dtype, shape, out.data()};
  convert_layout(a, from, b, to, 0, convert_tiles(shape, from, to));
  EXPECT_EQ(out.back(), T{99});
  out.pop_back();
  EXPECT_EQ(out, expected);
}

TEST(Layout, Conversions) {
  const Layout all[] = {{}, Layout::channels_last(), Layout::blocked(4), Layout::blocked(8), Layout::blocked(16)};
  for (Layout from : all)
    for (Layout to : all)
      for (int64_t channels : {1, 3, 4, 7, 8, 16, 18, 33})
        for (int64_t pixels : {1, 3, 4, 6, 63, 64, 65, 131}) {
          SCOPED_TRACE(cat(to_string(from), " to ", to_string(to), ", ", channels, " x ", pixels));
          check_conversion<float>(DType::fp32, from, to, channels, pixels);
          check_conversion<uint16_t>(DType::fp16, from, to, channels, pixels);
        }
}

}  // namespace
}  // namespace moka::kernel
