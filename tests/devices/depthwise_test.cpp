// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/depthwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Depthwise convolutions and convolutions of small groups, compared with sums in double precision.
namespace moka::devices_test {
namespace {

using namespace ir;

struct DepthwiseCase {
  int64_t images = 1, channels;
  std::vector<int64_t> size, taps, strides{1, 1}, dilations{1, 1}, pad;
  std::vector<Epilogue> epilogue{};
  bool bias = true, addend = false;
  int64_t mixed = 1;   // channels per group
  int64_t repeat = 1;  // output channels per input channel
};

bool taken(const DepthwiseCase& c) {
  if (c.mixed == devices::cpu::channel_block() || c.mixed > devices::cpu::vector::depthwise().lanes) return false;
  return c.mixed == 1 || (c.taps.back() == 3 && c.strides.back() <= 2 && c.dilations.back() == 1);
}

Value* conv(Graph& g, Value* x, const Tensor& weight, const DepthwiseCase& c) {
  std::vector<NamedArg> args{{"x", x},
                             {"weight", weight},
                             {"groups", static_cast<int>(c.channels / c.mixed)},
                             {"strides", Tensor::i32(c.strides)},
                             {"dilations", Tensor::i32(c.dilations)},
                             {"pad_type", "custom"},
                             {"pad", Tensor::i32(c.pad)}};
  if (c.bias) args.emplace_back("bias", g.random({c.channels * c.repeat}));
  Value* y = g.op("conv", args);
  if (y == nullptr) return nullptr;
  y->producer()->epilogue = c.epilogue;
  if (c.addend) y->producer()->set_input("addend", {g.input(y->type.shape())});
  return y;
}

void check_depthwise(const DepthwiseCase& c) {
  Graph g;
  Value* x = g.input(shape_of(c.images, c.channels, c.size));
  const auto r =
      expect_same(g, {conv(g, x, g.random(shape_of(c.channels * c.repeat, c.mixed, c.taps)), c)}, 1e-5, !taken(c));
  EXPECT_EQ(r.has("cpu.conv.depthwise"), taken(c)) << r.kernels;
}

TEST(Depthwise, ChannelsWindowsAndStrides) {
  for (int64_t channels : {2, 7, 8, 9, 15, 16, 17, 33, 40})
    for (int64_t taps : {1, 2, 3, 4, 5, 7})
      for (int64_t stride : {1, 2, 3}) {
        SCOPED_TRACE(cat(channels, " channels, ", taps, " taps every ", stride));
        const int64_t pad = taps / 2;
        check_depthwise({.images = 2,
                         .channels = channels,
                         .size = {13, 17},
                         .taps = {taps, taps},
                         .strides = {stride, stride},
                         .pad = {pad, pad, pad, pad}});
      }
}

TEST(Depthwise, EveryWidth) {
  for (int64_t width = 1; width <= 45; width++)
    for (int64_t taps : {3, 5, 7})
      for (int64_t stride : {1, 2}) {
        SCOPED_TRACE(cat(width, " pixels, ", taps, " taps every ", stride));
        check_depthwise({.channels = 17,
                         .size = {6, width},
                         .taps = {3, taps},
                         .strides = {stride, stride},
                         .pad = {1, 1, taps / 2, taps / 2}});
      }
}

TEST(Depthwise, WindowsThatAreNotSquare) {
  for (int64_t down : {1, 2, 3, 6, 9})
    for (int64_t across : {3, 5, 7}) {
      SCOPED_TRACE(cat(down, " x ", across));
      check_depthwise({.channels = 16,
                       .size = {11, 12},
                       .taps = {down, across},
                       .strides = {3, 2},
                       .pad = {down / 2, 0, 1, across / 2}});
      check_depthwise({.channels = 24, .size = {11, 12}, .taps = {down, across}, .pad = {0, down / 2, across / 2, 0}});
    }
}

/// Windows that lie in padding alone, and images that are smaller than a window.
TEST(Depthwise, PadsAndDilations) {
  for (const std::vector<int64_t>& pad : std::vector<std::vector<int64_t>>{
           {0, 0, 0, 0}, {4, 4, 4, 4}, {7, 0, 0, 9}, {0, 8, 9, 0}, {12, 12, 11, 11}, {2, 1, 0, 3}})
    for (int64_t stride : {1, 2}) {
      SCOPED_TRACE(cat(pad[0], pad[1], pad[2], pad[3], " every ", stride));
      check_depthwise(
          {.images = 2, .channels = 16, .size = {9, 10}, .taps = {5, 5}, .strides = {stride, stride}, .pad = pad});
      for (const std::vector<int64_t>& dilations : std::vector<std::vector<int64_t>>{{1, 1}, {3, 1}, {1, 2}, {2, 3}})
        check_depthwise({.images = 2,
                         .channels = 16,
                         .size = {9, 10},
                         .taps = {3, 3},
                         .strides = {stride, stride},
                         .dilations = dilations,
                         .pad = pad});
    }
  check_depthwise({.channels = 16, .size = {1, 1}, .taps = {5, 5}, .pad = {2, 2, 2, 2}});
  check_depthwise({.channels = 16, .size = {2, 3}, .taps = {7, 7}, .strides = {2, 2}, .pad = {3, 3, 3, 3}});
}

TEST(Depthwise, OneDimension) {
  for (int64_t taps : {3, 5, 7, 9})
    for (int64_t stride : {1, 2})
      check_depthwise({.images = 2,
                       .channels = 20,
                       .size = {41},
                       .taps = {taps},
                       .strides = {stride},
                       .dilations = {1},
                       .pad = {taps / 2, 0}});
  for (int64_t taps : {2, 3, 31})
    for (int64_t dilation : {2, 17, 64})
      for (int64_t stride : {1, 3}) {
        SCOPED_TRACE(cat(taps, " taps, dilation ", dilation, " every ", stride));
        const int64_t pad = (taps - 1) * dilation / 2;
        check_depthwise({.images = 2,
                         .channels = 20,
                         .size = {141},
                         .taps = {taps},
                         .strides = {stride},
                         .dilations = {dilation},
                         .pad = {pad, pad + 1},
                         .epilogue = {{"relu"}}});
      }
}

TEST(Depthwise, EpiloguesAndAddends) {
  for (const auto& epilogue : sample_epilogues())
    for (int64_t channels : {32, 33})
      for (bool bias : {true, false})
        for (bool addend : {true, false}) {
          SCOPED_TRACE(cat(epilogue.empty() ? "none" : epilogue[0].op, " ", channels, bias, addend));
          check_depthwise({.channels = channels,
                           .size = {9, 40},
                           .taps = {3, 3},
                           .pad = {1, 1, 1, 1},
                           .epilogue = epilogue,
                           .bias = bias,
                           .addend = addend});
        }
}

/// Padding channels stay zero for the next convolution.
TEST(Depthwise, Chains) {
  for (const std::vector<Epilogue>& epilogue :
       std::vector<std::vector<Epilogue>>{{{"exp"}}, {{"clip", 0.5f, 2}}, {{"clip", -2, -0.5f}}}) {
    Graph g;
    Value* a = conv(g, g.input({2, 21, 9, 8}), g.random({21, 1, 3, 3}),
                    {2, 21, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, epilogue});
    Value* b = g.op("conv", {{"x", a}, {"weight", g.random({40, 21, 3, 3})}, {"pad_type", "same"}});
    const auto r = expect_same(g, {b});
    EXPECT_TRUE(r.has("cpu.conv.depthwise")) << r.kernels;
  }
}

TEST(Depthwise, SeveralResultsOfEachChannel) {
  for (int64_t channels : {2, 3, 16, 20})
    for (int64_t repeat : {2, 3, 16, 21})
      for (int64_t stride : {1, 2}) {
        SCOPED_TRACE(cat(channels, " channels, ", repeat, " of each, every ", stride));
        DepthwiseCase c{2, channels, {23, 17}, {7, 3}, {stride, stride}, {1, 1}, {5, 0, 1, 1}, {{"relu"}}};
        c.repeat = repeat;
        check_depthwise(c);
      }
}

TEST(Depthwise, Groups) {
  for (int64_t mixed : {2, 4, 8, 16})
    for (int64_t channels : {16, 24, 32, 48, 80})
      for (int64_t stride : {1, 2})
        for (int64_t width : {1, 2, 17, 40}) {
          if (channels % mixed != 0) continue;
          SCOPED_TRACE(cat(channels, " channels in groups of ", mixed, ", every ", stride, " of ", width));
          check_depthwise({.images = 2,
                           .channels = channels,
                           .size = {7, width},
                           .taps = {3, 3},
                           .strides = {stride, stride},
                           .pad = {1, 1, 1, 1},
                           .epilogue = {{"relu"}},
                           .mixed = mixed});
          check_depthwise({.channels = channels,
                           .size = {9, width},
                           .taps = {2, 3},
                           .strides = {stride, stride},
                           .dilations = {2, 1},
                           .pad = {2, 0, 2, 2},
                           .bias = false,
                           .addend = true,
                           .mixed = mixed});
          check_depthwise({.channels = channels,
                           .size = {width},
                           .taps = {3},
                           .strides = {stride},
                           .dilations = {1},
                           .pad = {1, 2},
                           .epilogue = {{"silu"}},
                           .addend = true,
                           .mixed = mixed});
        }
  check_depthwise({.channels = 32, .size = {9, 9}, .taps = {5, 5}, .pad = {2, 2, 2, 2}, .mixed = 4});
}

/// Other kernels run groups with several outputs per channel, and groups that span blocks.
TEST(Depthwise, OtherGroups) {
  Graph g;
  Value* x = g.input({1, 32, 9, 9});
  const auto r = expect_same(
      g,
      {g.op("conv", {{"x", x}, {"weight", g.random({64, 2, 3, 3})}, {"groups", 16}, {"pad_type", "same"}}),
       g.op(
           "conv",
           {{"x", g.input({1, 30, 9, 9})}, {"weight", g.random({30, 3, 3, 3})}, {"groups", 10}, {"pad_type", "same"}})},
      1e-5, true);
  EXPECT_FALSE(r.has("cpu.conv.depthwise")) << r.kernels;
}

TEST(Depthwise, OddInputsAndWeights) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf("")})
    for (const char* after : {"", "relu", "relu6", "silu", "moka_hard_swish"})
      for (int64_t stride : {1, 2}) {
        SCOPED_TRACE(cat(odd, " ", after));
        Graph g;
        Tensor x = g.random({1, 20, 7, 23}, 0.5f, 1), w = g.random({20, 1, 5, 5}, 0.5f, 1);
        for (size_t at : {0u, 100u, 3219u}) x.mut<float>()[at] = odd;
        w.mut<float>()[18 * 25 + 3] = w.mut<float>()[25] = odd;
        DepthwiseCase c{1, 20, {7, 23}, {5, 5}, {stride, stride}, {1, 1}, {2, 2, 2, 2}};
        if (*after != 0) c.epilogue = {{after}};
        const auto r = expect_same(g, {conv(g, g.input_of(x), w, c)});
        EXPECT_TRUE(r.has("cpu.conv.depthwise")) << r.kernels;
        int64_t finite = 0;
        for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
        EXPECT_GE(finite, 16 * r.outputs[0].shape()[2] * r.outputs[0].shape()[3]);
      }
}

TEST(Depthwise, OddInputsAndWeightsStayInTheirGroups) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf("")}) {
    SCOPED_TRACE(odd);
    Graph g;
    Tensor x = g.random({1, 32, 7, 23}, 0.5f, 1), w = g.random({32, 4, 3, 3}, 0.5f, 1);
    for (size_t at : {0u, 100u, 3219u}) x.mut<float>()[at] = odd;
    w.mut<float>()[18 * 36 + 20] = w.mut<float>()[36] = odd;
    DepthwiseCase c{1, 32, {7, 23}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
    c.mixed = 4;
    const auto r = expect_same(g, {conv(g, g.input_of(x), w, c)}, 1e-5, !taken(c));
    int64_t finite = 0;
    for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
    EXPECT_GE(finite, 20 * 7 * 23);
  }
}

TEST(Depthwise, ThreadsGiveTheSameBits) {
  for (int64_t channels : {16, 130}) {
    Graph g;
    Value* x = g.input({1, channels, 90, 91});
    Value* y = conv(g, x, g.random({channels, 1, 5, 5}),
                    {1, channels, {90, 91}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, {{"silu"}}});
    expect_same_bits(g, y, "cpu.conv.depthwise", cat(channels));
  }
}

}  // namespace
}  // namespace moka::devices_test
