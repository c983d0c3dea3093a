// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Convolutions of few row-major input channels, compared with sums in double precision.
namespace moka::devices_test {
namespace {

using namespace ir;

struct SmallChannelsCase {
  int64_t images = 1, in, out;
  std::vector<int64_t> size, taps, strides{1, 1}, dilations{1, 1}, pad;
  std::vector<Epilogue> epilogue{{"silu"}};  // with it the kernel takes any window
  bool bias = true, addend = false;
};

Value* conv(Graph& g, Value* x, const Tensor& weight, const SmallChannelsCase& c) {
  std::vector<NamedArg> args{{"x", x},
                             {"weight", weight},
                             {"strides", Tensor::i32(c.strides)},
                             {"dilations", Tensor::i32(c.dilations)},
                             {"pad_type", "custom"},
                             {"pad", Tensor::i32(c.pad)}};
  if (c.bias) args.emplace_back("bias", g.random({c.out}));
  return with_epilogue(g, g.op("conv", args), c.epilogue, c.addend);
}

bool taken(const SmallChannelsCase& c) {
  const int64_t block = devices::cpu::channel_block();
  return c.in < block && c.out >= block && c.strides.back() <= 2;
}

void check_small_channels(const SmallChannelsCase& c) {
  Graph g;
  Value* x = g.input(shape_of(c.images, c.in, c.size));
  const auto r = expect_same(g, {conv(g, x, g.random(shape_of(c.out, c.in, c.taps), -0.3f, 0.3f), c)}, 1e-5, !taken(c));
  EXPECT_EQ(r.has("cpu.conv.small_channels"), taken(c)) << r.kernels;
}

TEST(SmallChannels, ChannelsWindowsAndStrides) {
  for (int64_t in : {1, 2, 3, 7, 9, 17})
    for (int64_t out : {7, 8, 15, 16, 17, 33, 48})
      for (int64_t taps : {1, 2, 3, 5})
        for (int64_t stride : {1, 2}) {
          SCOPED_TRACE(cat(in, " to ", out, ", ", taps, " taps every ", stride));
          const SmallChannelsCase c{
              2, in, out, {11, 17}, {taps, taps}, {stride, stride}, {1, 1}, {taps / 2, 0, 1, taps / 2}};
          if (taps > 1 || in < devices::cpu::channel_block()) check_small_channels(c);
        }
}

TEST(SmallChannels, EveryWidth) {
  for (int64_t width = 1; width <= 40; width++)
    for (int64_t stride : {1, 2}) {
      SCOPED_TRACE(cat(width, " every ", stride));
      check_small_channels(
          {.in = 3, .out = 33, .size = {5, width}, .taps = {3, 3}, .strides = {stride, stride}, .pad = {1, 1, 1, 1}});
    }
  check_small_channels({.in = 3, .out = 16, .size = {5, 300}, .taps = {3, 3}, .pad = {1, 1, 1, 1}});
}

TEST(SmallChannels, PadsDilationsAndDimensions) {
  for (const std::vector<int64_t>& pad :
       std::vector<std::vector<int64_t>>{{0, 0, 0, 0}, {4, 4, 4, 4}, {7, 0, 0, 9}, {0, 8, 9, 0}, {12, 12, 11, 11}})
    for (int64_t stride : {1, 2}) {
      SCOPED_TRACE(cat(pad[0], pad[1], pad[2], pad[3], " every ", stride));
      check_small_channels(
          {.images = 2, .in = 3, .out = 16, .size = {9, 10}, .taps = {3, 3}, .strides = {stride, stride}, .pad = pad});
      check_small_channels({.images = 2,
                            .in = 3,
                            .out = 16,
                            .size = {9, 10},
                            .taps = {3, 2},
                            .strides = {3, stride},
                            .dilations = {3, 2},
                            .pad = pad});
      check_small_channels({.images = 2,
                            .in = 5,
                            .out = 16,
                            .size = {9, 10},
                            .taps = {1, 5},
                            .strides = {4, stride},
                            .dilations = {1, 2},
                            .pad = pad});
    }
  check_small_channels(
      {.images = 2, .in = 3, .out = 20, .size = {41}, .taps = {5}, .strides = {2}, .dilations = {1}, .pad = {2, 1}});
}

/// Windows, strides, dilations and padding along the depth too.
TEST(SmallChannels, Volumes) {
  for (const auto& [taps, strides, dilations, pad] :
       std::vector<std::array<std::vector<int64_t>, 4>>{{{{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}}},
                                                        {{{3, 7, 7}, {1, 2, 2}, {1, 1, 1}, {1, 1, 3, 3, 3, 3}}},
                                                        {{{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1, 0, 0, 1}}},
                                                        {{{3, 1, 1}, {2, 1, 1}, {2, 1, 1}, {4, 4, 0, 0, 0, 0}}},
                                                        {{{2, 3, 2}, {2, 2, 1}, {3, 1, 2}, {0, 0, 0, 0, 0, 0}}},
                                                        {{{5, 2, 2}, {1, 1, 2}, {1, 2, 1}, {0, 9, 1, 1, 2, 0}}}})
    for (int64_t in : {1, 3, 7})
      for (int64_t out : {16, 33}) {
        SCOPED_TRACE(cat(taps[0], " deep of ", in, " to ", out));
        check_small_channels({.images = 2,
                              .in = in,
                              .out = out,
                              .size = {7, 9, 10},
                              .taps = taps,
                              .strides = strides,
                              .dilations = dilations,
                              .pad = pad});
      }
}

/// More taps than in one partial sum, and shapes that the kernel takes with any epilogue.
TEST(SmallChannels, LargeWindows) {
  check_small_channels({.in = 3, .out = 33, .size = {30, 31}, .taps = {9, 9}, .pad = {4, 4, 4, 4}});
  for (const std::vector<Epilogue>& epilogue : std::vector<std::vector<Epilogue>>{{}, {{"relu"}}, {{"relu6"}, {"exp"}}})
    for (int64_t out : {24, 48}) {
      Graph g;
      Value* x = g.input({1, 3, 64, 64});
      const Tensor patches = g.random({out, 3, 16, 16}, -0.1f, 0.1f), wide = g.random({out, 3, 9, 9}, -0.1f, 0.1f);
      const auto r = expect_same(
          g, {conv(g, x, patches, {1, 3, out, {64, 64}, {16, 16}, {16, 16}, {1, 1}, {0, 0, 0, 0}, epilogue}),
              conv(g, x, wide, {1, 3, out, {64, 64}, {9, 9}, {1, 1}, {1, 1}, {4, 4, 4, 4}, epilogue})});
      EXPECT_TRUE(r.has("cpu.conv.small_channels")) << r.kernels;
      EXPECT_EQ(r.has("cpu.conv.dense"), devices::cpu::isa() != devices::cpu::Isa::base) << r.kernels;
    }
}

TEST(SmallChannels, EpiloguesAndAddends) {
  for (const std::vector<Epilogue>& epilogue : std::vector<std::vector<Epilogue>>{
           {{"silu"}}, {{"sigmoid"}}, {{"silu"}, {"relu"}}, {{"sigmoid"}, {"linear_activation", 2, 3}}})
    for (int64_t out : {24, 32, 33})
      for (bool bias : {true, false})
        for (bool addend : {true, false}) {
          SCOPED_TRACE(cat(epilogue[0].op, " ", out, bias, addend));
          check_small_channels({.in = 3,
                                .out = out,
                                .size = {9, 130},
                                .taps = {3, 3},
                                .pad = {1, 1, 1, 1},
                                .epilogue = epilogue,
                                .bias = bias,
                                .addend = addend});
        }
}

/// Padding channels stay zero for the next convolution.
TEST(SmallChannels, Chains) {
  Graph g;
  Value* a = conv(g, g.input({2, 3, 9, 8}), g.random({21, 3, 3, 3}),
                  {2, 3, 21, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {{"sigmoid"}}});
  Value* b = g.op("conv", {{"x", a}, {"weight", g.random({40, 21, 3, 3})}, {"pad_type", "same"}});
  const auto r = expect_same(g, {b});
  EXPECT_TRUE(r.has("cpu.conv.small_channels")) << r.kernels;
}

TEST(SmallChannels, OddInputsAndWeights) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf("")})
    for (int64_t stride : {1, 2}) {
      SCOPED_TRACE(cat(odd, " every ", stride));
      Graph g;
      Tensor x = g.random({1, 3, 13, 23}, 0.5f, 1), w = g.random({20, 3, 5, 5}, 0.5f, 1);
      for (size_t at : {0u, 100u, 896u}) x.mut<float>()[at] = odd;
      w.mut<float>()[18 * 75 + 3] = w.mut<float>()[75] = odd;
      const auto r = expect_same(
          g, {conv(g, g.input_of(x), w, {1, 3, 20, {13, 23}, {5, 5}, {stride, stride}, {1, 1}, {2, 2, 2, 2}})});
      EXPECT_TRUE(r.has("cpu.conv.small_channels")) << r.kernels;
      int64_t finite = 0;
      for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
      EXPECT_GT(finite, 0);
    }
}

TEST(SmallChannels, ThreadsGiveTheSameBits) {
  Graph g;
  Value* x = g.input({2, 3, 90, 91});
  Value* y =
      conv(g, x, g.random({50, 3, 5, 5}), {2, 3, 50, {90, 91}, {5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}, {{"silu"}}});
  expect_same_bits(g, y, "cpu.conv.small_channels", "threads");
  Graph volumes;
  y = conv(volumes, volumes.input({2, 3, 5, 40, 41}), volumes.random({50, 3, 3, 5, 5}),
           {2, 3, 50, {5, 40, 41}, {3, 5, 5}, {1, 2, 2}, {1, 1, 1}, {1, 1, 2, 2, 2, 2}, {{"silu"}}});
  expect_same_bits(volumes, y, "cpu.conv.small_channels", "threads of volumes");
}

}  // namespace
}  // namespace moka::devices_test
