// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Convolutions with few output channels.
namespace moka::devices_test {
namespace {

using namespace ir;

struct NarrowCase {
  int64_t images = 1, in, out, height, width;
  std::vector<int64_t> taps{3, 3}, strides{1, 1}, dilations{1, 1}, pad{1, 1, 1, 1};
  std::vector<Epilogue> epilogue{};
  bool addend = false;
  int64_t groups = 1;
};

Value* conv(Graph& g, Value* x, const Tensor& weight, const NarrowCase& c) {
  Value* y = g.op("conv", {{"x", x},
                           {"weight", weight},
                           {"bias", g.random({c.out})},
                           {"groups", static_cast<int>(c.groups)},
                           {"strides", Tensor::i32(c.strides)},
                           {"dilations", Tensor::i32(c.dilations)},
                           {"pad_type", "custom"},
                           {"pad", Tensor::i32(c.pad)}});
  if (y == nullptr) return y;
  y->producer()->epilogue = c.epilogue;
  if (c.addend) y->producer()->set_input("addend", {g.input(y->type.shape())});
  return y;
}

bool is_narrow(const Run& r) { return r.has("cpu.conv.narrow"); }

Run run_narrow(const NarrowCase& c) {
  Graph g;
  Value* x = g.input({c.images, c.in, c.height, c.width});
  return expect_same(g, {conv(g, x, g.random({c.out, c.in / c.groups, c.taps[0], c.taps[1]}), c)});
}

TEST(Narrow, ChannelsAndWidths) {
  int64_t claimed = 0;
  for (int64_t in : {1, 3, 7, 16, 17, 33})
    for (int64_t out : {1, 2, 3, 4, 5, 8, 11, 17})
      for (int64_t width : {3, 16, 31, 50, 97, 215}) {
        SCOPED_TRACE(cat(in, " to ", out, ", ", width));
        claimed += is_narrow(run_narrow(
            {.images = 2, .in = in, .out = out, .height = 11, .width = width, .taps = {5, 5}, .pad = {2, 2, 2, 2}}));
      }
  EXPECT_GT(claimed, 40);
}

TEST(Narrow, Windows) {
  int64_t claimed = 0;
  for (const std::vector<int64_t>& taps :
       std::vector<std::vector<int64_t>>{{9, 9}, {1, 9}, {9, 1}, {2, 4}, {3, 11}, {15, 3}})
    for (int64_t down : {1, 2, 3})
      for (const std::vector<int64_t>& pad :
           std::vector<std::vector<int64_t>>{{0, 0, 0, 0}, {4, 1, 2, 6}, {20, 0, 30, 17}}) {
        SCOPED_TRACE(cat(taps[0], " x ", taps[1], " by ", down, ", pad ", pad[0], pad[1], pad[2], pad[3]));
        claimed += is_narrow(run_narrow(
            {.in = 19, .out = 2, .height = 40, .width = 90, .taps = taps, .strides = {down, 1}, .pad = pad}));
      }
  EXPECT_GT(claimed, 30);
  EXPECT_TRUE(is_narrow(run_narrow(
      {.in = 19, .out = 3, .height = 40, .width = 90, .taps = {5, 3}, .dilations = {3, 7}, .pad = {6, 6, 7, 7}})));
  EXPECT_FALSE(
      is_narrow(run_narrow({.in = 19, .out = 3, .height = 40, .width = 90, .taps = {1, 1}, .pad = {0, 0, 0, 0}})));
  EXPECT_FALSE(is_narrow(run_narrow({.in = 19, .out = 3, .height = 40, .width = 90, .strides = {2, 2}})));
  EXPECT_FALSE(
      is_narrow(run_narrow({.in = 19, .out = 3, .height = 40, .width = 90, .taps = {17, 3}, .pad = {8, 8, 1, 1}})));
}

TEST(Narrow, Groups) {
  const int64_t block = devices::cpu::channel_block();
  for (int64_t groups : {2, 3, 8})
    for (const auto& [in, out] :
         std::vector<std::pair<int64_t, int64_t>>{{24, 24}, {2, 3}, {5, 3}, {20, 40}, {17, 6}, {16, 16}}) {
      SCOPED_TRACE(cat(groups, " groups of ", in, " to ", out));
      if (in % block == 0 && out % block == 0) continue;
      for (const NarrowCase& c : {NarrowCase{.images = 2,
                                 .in = groups * in,
                                 .out = groups * out,
                                 .height = 9,
                                 .width = 28,
                                 .epilogue = {{"silu"}},
                                 .addend = true,
                                 .groups = groups},
                                  NarrowCase{.in = groups * in,
                                  .out = groups * out,
                                  .height = 40,
                                  .width = 7,
                                  .taps = {5, 3},
                                  .strides = {2, 1},
                                  .dilations = {1, 2},
                                  .pad = {3, 0, 2, 2},
                                  .groups = groups}}) {
        Graph g;
        Value* x = g.input({c.images, c.in, c.height, c.width});
        expect_same_by("cpu.conv.narrow", g, conv(g, x, g.random({c.out, in, c.taps[0], c.taps[1]}), c));
      }
    }
  EXPECT_TRUE(is_narrow(run_narrow({.in = 12, .out = 12, .height = 9, .width = 28, .groups = 4})));
  EXPECT_FALSE(is_narrow(run_narrow({.in = 64, .out = 64, .height = 9, .width = 28, .groups = 16})));
}

TEST(Narrow, EpiloguesAndAddends) {
  for (const std::vector<Epilogue>& epilogue :
       std::vector<std::vector<Epilogue>>{{}, {{"relu"}}, {{"exp"}}, {{"leaky_relu", 0.2f}, {"clip", -0.1f, 1.5f}}})
    for (bool addend : {false, true}) {
      NarrowCase c{2, 20, 3, 20, 70, {7, 7}, {1, 1}, {1, 1}, {3, 3, 3, 3}, epilogue, addend};
      Graph g;
      const auto r = expect_same(g, {conv(g, g.input({2, 20, 20, 70}), g.random({3, 20, 7, 7}, -0.02f, 0.02f), c)});
      EXPECT_TRUE(is_narrow(r)) << r.kernels;
    }
}

/// More output channels than are summed at once, but still at most half of a block.
TEST(Narrow, SeveralParts) {
  for (int64_t out : {5, 6, 8}) {
    SCOPED_TRACE(out);
    const bool half_empty = 2 * out <= devices::cpu::channel_block();
    const auto r = run_narrow({.in = 8, .out = out, .height = 30, .width = 61, .taps = {3, 39}, .pad = {1, 1, 19, 19}});
    if (half_empty) {
      EXPECT_TRUE(is_narrow(r)) << r.kernels;
    }
  }
}

/// The blocked result of another convolution is read without conversion.
TEST(Narrow, BehindOthers) {
  for (int64_t channels : {16, 24, 40}) {
    Graph g;
    Value* x = g.op("conv", {{"x", g.input({2, 16, 30, 75})}, {"weight", g.random({channels, 16, 1, 1})}});
    const auto r = expect_same(g, {conv(g, x, g.random({3, channels, 9, 9}, -0.1f, 0.1f),
                                        {2, channels, 3, 30, 75, {9, 9}, {1, 1}, {1, 1}, {4, 4, 4, 4}})});
    EXPECT_TRUE(is_narrow(r)) << r.kernels;
    EXPECT_FALSE(r.has("cpu.conv.narrow convert")) << r.kernels;
  }
}

TEST(Narrow, OddNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf("")}) {
    Graph g;
    Tensor x = g.random({1, 17, 20, 60}), w = g.random({3, 17, 9, 9});
    for (int64_t at : {int64_t{0}, int64_t{5 * 60 + 41}, int64_t{16 * 1200 + 1199}})
      x.mut<float>()[static_cast<size_t>(at)] = odd;
    w.mut<float>()[17 * 81 + 40] = odd;
    const auto r =
        expect_same(g, {conv(g, g.input_of(x), w, {1, 17, 3, 20, 60, {9, 9}, {1, 1}, {1, 1}, {4, 4, 4, 4}})});
    EXPECT_TRUE(is_narrow(r)) << r.kernels;
  }
}

TEST(Narrow, ThreadsGiveTheSameBits) {
  Graph g;
  Value* y = conv(g, g.input({2, 33, 67, 101}), g.random({3, 33, 9, 9}),
                  {2, 33, 3, 67, 101, {9, 9}, {1, 1}, {1, 1}, {4, 4, 4, 4}});
  expect_same_bits(g, y, "cpu.conv.narrow", "threads");
}

/// Pointwise convolutions to a few channels.
TEST(Dots, Sizes) {
  int i = 0;
  for (int64_t in : {1, 8, 19, 40, 130})
    for (int64_t out : {1, 2, 3, 5})
      for (int64_t width : {1, 7, 16, 53, 340}) {
        SCOPED_TRACE(cat(in, " to ", out, ", ", width));
        Graph g;
        g.threads = 1 + i % 3;
        NarrowCase c{.images = 1 + i % 2,
                     .in = in,
                     .out = out,
                     .height = 7,
                     .width = width,
                     .taps = {1, 1},
                     .pad = {0, 0, 0, 0}};
        c.epilogue = sample_epilogues()[static_cast<size_t>(i++) % sample_epilogues().size()];
        Value* y = conv(g, g.input({c.images, in, 7, width}), g.random({out, in, 1, 1}), c);
        ASSERT_NE(y, nullptr);
        expect_same_by("cpu.conv.dots", g, y);
      }
}

TEST(Dots, TakesBlocksOfTheConvolutionBefore) {
  Graph g;
  NarrowCase c{.in = 24, .out = 48, .height = 20, .width = 21};
  Value* x = conv(g, g.input({1, 24, 20, 21}), g.random({48, 24, 3, 3}), c);
  const NarrowCase last{.in = 48, .out = 2, .height = 20, .width = 21, .taps = {1, 1}, .pad = {0, 0, 0, 0}};
  Value* y = conv(g, x, g.random({2, 48, 1, 1}), last);
  EXPECT_TRUE(expect_same(g, {y}).has("cpu.conv.dots"));
  expect_same_bits(g, y, "cpu.conv.dots", "threads");
}

}  // namespace
}  // namespace moka::devices_test
