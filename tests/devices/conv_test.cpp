// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// The tolerance is 1e-5 of the largest expected value, for fp32 sums of up to some thousands of products in another
/// order.
namespace moka::devices_test {
namespace {

using namespace ir;

struct ConvCase {
  int64_t n = 1, in, out, groups = 1;
  std::vector<int64_t> size, kernel, strides{1, 1}, dilations{1, 1}, pad{};
  std::string pad_type = "custom";
  std::vector<Epilogue> epilogue{};
  bool bias = true;
  bool addend = false;
};

Run check_conv(const ConvCase& c, bool transposed = false, bool constant = true, bool anywhere = false) {
  Graph g;
  Value* x = g.input(shape_of(c.n, c.in, c.size));
  const Shape w = transposed ? shape_of(c.in, c.out / c.groups, c.kernel) : shape_of(c.out, c.in / c.groups, c.kernel);
  std::vector<NamedArg> args{{"x", x},
                             {"pad_type", c.pad_type},
                             {"groups", static_cast<int>(c.groups)},
                             {"strides", Tensor::i32(c.strides)},
                             {"dilations", Tensor::i32(c.dilations)}};
  if (constant)
    args.emplace_back("weight", g.random(w));
  else
    args.emplace_back("weight", g.input(w));
  if (c.bias) args.emplace_back("bias", g.random({c.out}));
  if (c.pad_type == "custom") args.emplace_back("pad", Tensor::i32(c.pad));
  Value* y = g.op(transposed ? "conv_transpose" : "conv", args);
  if (y == nullptr) return {};
  y->producer()->epilogue = c.epilogue;
  if (c.addend) y->producer()->set_input("addend", {g.input(y->type.shape())});
  Run r = expect_same(g, {y}, 1e-5, anywhere);
  return r;
}

TEST(CpuConv, AwkwardChannels) {
  for (int64_t in : {1, 3, 17, 33})
    for (int64_t out : {1, 3, 17, 33}) {
      SCOPED_TRACE(cat(in, " to ", out));
      check_conv({.in = in, .out = out, .size = {13, 15}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}});
      check_conv(
          {.n = 2, .in = in, .out = out, .size = {13, 15}, .kernel = {3, 2}, .strides = {2, 1}, .pad = {0, 2, 1, 0}});
      check_conv({.in = in, .out = out, .size = {13, 15}, .kernel = {1, 1}, .strides = {2, 2}, .pad = {0, 0, 0, 0}});
    }
}

TEST(CpuConv, DilationsAndPads) {
  for (int64_t ch : {3, 16, 64}) {
    SCOPED_TRACE(ch);
    check_conv({.in = ch, .out = ch, .size = {19, 21}, .kernel = {3, 3}, .dilations = {2, 3}, .pad = {2, 2, 3, 3}});
    check_conv({.in = ch, .out = ch, .size = {19, 21}, .kernel = {5, 3}, .strides = {2, 3}, .pad_type = "same"});
    check_conv({.in = ch, .out = ch, .size = {20, 21}, .kernel = {3, 3}, .strides = {2, 2}, .pad_type = "same_lower"});
    check_conv({.in = ch, .out = ch, .size = {20, 21}, .kernel = {2, 2}, .strides = {3, 3}, .pad_type = "valid"});
  }
}

/// Taps that read padding at most positions, or at all positions.
TEST(CpuConv, DilatedBeyondTheImage) {
  for (int64_t ch : {16, 33, 80})
    for (bool addend : {false, true}) {
      SCOPED_TRACE(cat(ch, " ", addend));
      auto taps = [&](const ConvCase& c) {
        const auto r = check_conv(c);
        EXPECT_TRUE(r.has("cpu.conv.per_tap")) << r.kernels;
      };
      taps({2, ch, ch, 1, {9, 11}, {3, 3}, {1, 1}, {6, 6}, {6, 6, 6, 6}, "custom", {{"sigmoid"}}, true, addend});
      taps({1, ch, 50, 1, {9, 11}, {3, 3}, {1, 1}, {12, 14}, {12, 12, 14, 14}, "custom", {}, false, addend});
      taps({1, ch, 17, 1, {13, 11}, {3, 5}, {2, 3}, {5, 4}, {8, 3, 9, 0}, "custom", {{"softplus"}}, true, addend});
      taps({1, ch, 17, 1, {61, 67}, {3, 3}, {1, 1}, {30, 33}, {30, 30, 33, 33}, "custom", {{"relu"}}, true, addend});
      taps({1, ch, 96, 1, {40, 37}, {3, 3}, {1, 1}, {18, 17}, {}, "same", {}, true, addend});
    }
}

TEST(CpuConv, Groups) {
  check_conv({.in = 32, .out = 64, .groups = 2, .size = {9, 9}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}});
  check_conv({.in = 12, .out = 6, .groups = 3, .size = {9, 9}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}});
  check_conv({.n = 2, .in = 33, .out = 33, .groups = 33, .size = {9, 11}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}});
  check_conv(
      {.in = 64, .out = 64, .groups = 64, .size = {9, 11}, .kernel = {5, 5}, .strides = {2, 2}, .pad = {2, 2, 2, 2}});
  check_conv({.in = 32,
              .out = 32,
              .groups = 32,
              .size = {15, 11},
              .kernel = {3, 3},
              .dilations = {2, 2},
              .pad = {2, 2, 2, 2}});
  check_conv({.in = 16, .out = 32, .groups = 16, .size = {9, 11}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}});
}

TEST(CpuConv, OneAndThreeDimensions) {
  for (int64_t ch : {3, 17, 32}) {
    SCOPED_TRACE(ch);
    check_conv(
        {.n = 2, .in = ch, .out = ch, .size = {40}, .kernel = {5}, .strides = {2}, .dilations = {1}, .pad = {2, 2}});
    check_conv(
        {.n = 2, .in = ch, .out = ch, .size = {40}, .kernel = {3}, .strides = {1}, .dilations = {4}, .pad = {4, 0}});
    check_conv({.in = ch,
                .out = ch,
                .size = {7, 8, 9},
                .kernel = {3, 3, 3},
                .strides = {1, 2, 1},
                .dilations = {1, 1, 1},
                .pad = {1, 1, 1, 1, 0, 0}});
  }
  check_conv({.in = 32,
              .out = 32,
              .groups = 32,
              .size = {40},
              .kernel = {3},
              .strides = {1},
              .dilations = {1},
              .pad = {1, 1}});
  check_conv({.in = 32,
              .out = 32,
              .groups = 32,
              .size = {6, 7, 8},
              .kernel = {3, 3, 3},
              .strides = {1, 1, 1},
              .dilations = {1, 1, 1},
              .pad = {1, 1, 1, 1, 1, 1}});
}

TEST(CpuConv, Transposed) {
  for (int64_t ch : {1, 3, 17, 32}) {
    SCOPED_TRACE(ch);
    check_conv({.in = ch, .out = ch, .size = {7, 8}, .kernel = {3, 3}, .strides = {2, 2}, .pad = {1, 1, 1, 1}}, true);
    check_conv({.n = 2, .in = ch, .out = 5, .size = {7, 8}, .kernel = {4, 2}, .strides = {2, 1}, .pad_type = "same"},
               true);
    check_conv(
        {.in = ch, .out = ch, .groups = ch, .size = {7, 8}, .kernel = {3, 3}, .strides = {2, 2}, .pad_type = "valid"},
        true);
    check_conv({.in = ch, .out = 2 * ch, .size = {9}, .kernel = {4}, .strides = {2}, .dilations = {1}, .pad = {1, 1}},
               true);
    check_conv({.in = ch, .out = ch, .size = {7, 8}, .kernel = {3, 3}, .dilations = {2, 2}, .pad = {1, 1, 1, 1}}, true);
  }
}

TEST(CpuConv, VariableWeights) {
  check_conv({.in = 17, .out = 33, .size = {9, 9}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}}, false, false);
  check_conv({.in = 32, .out = 32, .size = {9, 9}, .kernel = {1, 1}, .pad = {0, 0, 0, 0}}, false, false);
  check_conv({.in = 8, .out = 12, .size = {9, 9}, .kernel = {3, 3}, .strides = {2, 2}, .pad = {1, 1, 1, 1}}, true,
             false, true);
}

TEST(CpuConv, Epilogues) {
  for (const char* op :
       {"relu", "relu6", "sigmoid", "tanh", "silu", "gelu", "gelu_tanh", "softplus", "abs", "square", "exp"}) {
    SCOPED_TRACE(op);
    check_conv({.in = 17, .out = 33, .size = {9, 9}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}, .epilogue = {{op}}});
    check_conv({.in = 8,
                .out = 5,
                .size = {5, 5},
                .kernel = {2, 2},
                .strides = {2, 2},
                .pad = {0, 0, 0, 0},
                .epilogue = {{op}}},
               true);
  }
  check_conv({.in = 17,
              .out = 33,
              .size = {9, 9},
              .kernel = {3, 3},
              .pad = {1, 1, 1, 1},
              .epilogue = {{"leaky_relu", 0.2f}, {"clip", -0.1f, 1.5f}}});
  check_conv({.in = 17,
              .out = 33,
              .size = {9, 9},
              .kernel = {3, 3},
              .pad = {1, 1, 1, 1},
              .epilogue = {{"sigmoid_hard", 0.2f, 0.5f}}});
  check_conv(
      {.in = 17, .out = 33, .size = {9, 9}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}, .epilogue = {{"moka_hard_swish"}}});
  check_conv({.in = 17,
              .out = 33,
              .size = {9, 9},
              .kernel = {3, 3},
              .pad = {1, 1, 1, 1},
              .epilogue = {{"elu", 0.7f}, {"linear_activation", 2, 3}},
              .bias = false});
}

/// Two functions of the same kind with different parameters.
TEST(CpuConv, EpiloguesOfOneKind) {
  using Epilogues = std::vector<Epilogue>;
  for (const Epilogues& after :
       {Epilogues{{"sigmoid_hard", 0.2f, 0.5f}, {"linear_activation", 2, 3}}, Epilogues{{"clip", -1, 1}, {"relu6"}},
        Epilogues{{"leaky_relu", 0.5f}, {"linear_activation", 1, -1}, {"leaky_relu", 0.1f}},
        Epilogues{{"abs"}, {"square"}, {"abs"}}})
    for (int64_t taps : {1, 3}) {
      SCOPED_TRACE(cat(after[0].op, " ", taps));
      check_conv({.in = 17, .out = 33, .size = {9, 9}, .kernel = {taps, taps}, .pad = {0, 0, 0, 0}, .epilogue = after});
      check_conv({.in = 24,
                  .out = 24,
                  .groups = 24,
                  .size = {9, 9},
                  .kernel = {taps, taps},
                  .pad = {0, 0, 0, 0},
                  .epilogue = after});
    }
}

TEST(CpuConv, Addends) {
  for (int64_t ch : {3, 17, 32})
    for (const char* op : {"", "relu", "softplus"}) {
      SCOPED_TRACE(cat(ch, " ", op));
      std::vector<Epilogue> after;
      if (*op != 0) after = {{op}};
      check_conv({.n = 2,
                  .in = ch,
                  .out = ch,
                  .size = {9, 7},
                  .kernel = {3, 3},
                  .pad = {1, 1, 1, 1},
                  .epilogue = after,
                  .addend = true});
      check_conv({.in = 16,
                  .out = ch,
                  .size = {9, 7},
                  .kernel = {1, 1},
                  .strides = {2, 2},
                  .pad = {0, 0, 0, 0},
                  .epilogue = after,
                  .bias = false,
                  .addend = true});
      check_conv({.in = ch,
                  .out = ch,
                  .groups = ch,
                  .size = {9, 7},
                  .kernel = {3, 3},
                  .pad = {1, 1, 1, 1},
                  .epilogue = after,
                  .addend = true});
      check_conv({.in = 24,
                  .out = ch,
                  .size = {30, 37},
                  .kernel = {3, 3},
                  .pad = {1, 1, 1, 1},
                  .epilogue = after,
                  .addend = true});
    }
}

/// The result may take the addend's memory only if the operation reads nothing else there.
TEST(CpuConv, AddsItsOwnInput) {
  Graph g;
  Value* x = g.op("conv", {{"x", g.input({1, 32, 9, 7})}, {"weight", g.random({32, 32, 1, 1})}});
  Value* y = g.op("conv", {{"x", x}, {"weight", g.random({32, 32, 3, 3})}, {"pad_type", "same"}});
  y->producer()->set_input("addend", {x});
  Value* z = g.op("conv", {{"x", y}, {"weight", g.random({32, 32, 3, 3})}, {"pad_type", "same"}});
  Value* last = g.op("conv", {{"x", z}, {"weight", g.random({32, 32, 1, 1})}});
  last->producer()->set_input("addend", {y});
  expect_same(g, {last});
}

/// One-dimensional inputs are images of one row.
TEST(CpuConv, OneDimension) {
  const bool base = devices::cpu::isa() == devices::cpu::Isa::base;
  struct Line {
    int64_t in, out, length, taps, dilation;
    const char* kernel;
  };
  const Line all[] = {
      {.in = 48, .out = 64, .length = 203, .taps = 3, .dilation = 1, .kernel = "cpu.conv.winograd"},
      {.in = 40, .out = 33, .length = 97, .taps = 5, .dilation = 1, .kernel = "cpu.conv.winograd"},
      {.in = 33, .out = 2, .length = 301, .taps = 9, .dilation = 1, .kernel = "cpu.conv.narrow"},
      {.in = 8, .out = 3, .length = 150, .taps = 7, .dilation = 2, .kernel = "cpu.conv.narrow"},
      {.in = 32, .out = 32, .length = 100, .taps = 3, .dilation = 64, .kernel = "cpu.conv.per_tap"},
  };
  for (const Line& l : all) {
    SCOPED_TRACE(cat(l.in, " to ", l.out, " of ", l.length));
    Graph g;
    Value* y = g.op("conv", {{"x", g.input({2, l.in, l.length})},
                             {"weight", g.random({l.out, l.in, l.taps})},
                             {"bias", g.random({l.out})},
                             {"dilations", Tensor::i32({static_cast<int32_t>(l.dilation)})},
                             {"pad_type", "same"}});
    const auto r = expect_same(g, {y});
    if (!base) {
      EXPECT_TRUE(r.has(l.kernel)) << r.kernels;
    }
  }
}

/// Padding channels must stay zero for the next convolution.
TEST(CpuConv, Chains) {
  Graph g;
  Value* x = g.input({1, 3, 23, 25});
  Value* a =
      g.op("conv", {{"x", x}, {"weight", g.random({33, 3, 3, 3})}, {"bias", g.random({33})}, {"pad_type", "same"}});
  a->producer()->epilogue = {{"sigmoid"}};
  Value* b = g.op("conv", {{"x", a}, {"weight", g.random({33, 1, 3, 3})}, {"groups", 33}, {"pad_type", "same"}});
  b->producer()->epilogue = {{"exp"}};
  Value* c = g.op("max_pool", {{"x", b},
                               {"kernel_sizes", Tensor::i32({3, 3})},
                               {"strides", Tensor::i32({2, 2})},
                               {"pad_type", "custom"},
                               {"pad", Tensor::i32({1, 1, 1, 1})}});
  Value* d = g.op("conv", {{"x", c}, {"weight", g.random({17, 33, 1, 1})}, {"pad_type", "valid"}});
  expect_same(g, {d});
}

TEST(CpuPool, WindowsAndPads) {
  for (const char* op : {"max_pool", "avg_pool"})
    for (int64_t ch : {1, 16, 33})
      for (bool ceil : {false, true})
        for (bool exclude : {false, true}) {
          SCOPED_TRACE(cat(op, " ", ch, " ", ceil, " ", exclude));
          Graph g;
          std::vector<NamedArg> args{{"x", g.input({2, ch, 12, 15})},    {"kernel_sizes", Tensor::i32({3, 2})},
                                     {"strides", Tensor::i32({2, 2})},   {"pad_type", "custom"},
                                     {"pad", Tensor::i32({1, 1, 0, 0})}, {"ceil_mode", ceil}};
          if (std::string_view(op) == "avg_pool") args.emplace_back("exclude_padding_from_average", exclude);
          expect_same(g, {g.op(op, args)});
        }
  Graph g;
  Value* x = g.input({1, 20, 31});
  expect_same(
      g, {g.op("max_pool",
               {{"x", x}, {"kernel_sizes", Tensor::i32({3})}, {"strides", Tensor::i32({2})}, {"pad_type", "same"}}),
          g.op("avg_pool", {{"x", x}, {"kernel_sizes", Tensor::i32({3})}, {"pad_type", "valid"}})});
}

/// Divides blocked images by rows. The last block is not full.
TEST(CpuPool, ThreadsGiveTheSameBits) {
  for (int64_t images : {1, 3})
    for (int64_t rows : {5, 31, 64}) {
      Graph g;
      Value* x = g.op("conv", {{"x", g.input({images, 17, rows, 15})}, {"weight", g.random({35, 17, 1, 1})}});
      Value* y = g.op(
          "max_pool",
          {{"x", x}, {"kernel_sizes", Tensor::i32({3, 2})}, {"strides", Tensor::i32({2, 1})}, {"pad_type", "same"}});
      expect_same_bits(g, y, "cpu.max_pool", cat(images, " of ", rows, " rows"));
      expect_same(g, {y});
    }
}

/// By definition every input element adds a multiple of the kernel. Non-finite weights must not affect results to which
/// no input element contributes.
TEST(ReferenceConvTranspose, OddWeightsStayUnderTheInput) {
  constexpr int64_t kGroups = 2, kIn = 4, kMade = 3, kH = 3, kW = 4, kKernelH = 3, kKernelW = 4;
  constexpr int64_t kStride[2] = {2, 3}, kDilation[2] = {3, 1}, kPad[4] = {1, 2, 0, 1};
  constexpr int64_t kOutH = (kH - 1) * 2 + (kKernelH - 1) * 3 + 1 - 3, kOutW = (kW - 1) * 3 + kKernelW - 1;
  Graph g;
  Value* x = g.input({2, kIn, kH, kW}, 0.5f, 1);
  Tensor weight = g.random({kIn, kMade, kKernelH, kKernelW}, 0.5f, 1);
  weight.mut<float>()[0] = weight.mut<float>()[29] = std::numeric_limits<float>::infinity();
  weight.mut<float>()[17] = -std::numeric_limits<float>::infinity();
  weight.mut<float>()[100] = std::numeric_limits<float>::quiet_NaN();
  Value* y = g.op("conv_transpose", {{"x", x},
                                     {"weight", weight},
                                     {"pad_type", "custom"},
                                     {"pad", Tensor::i32(kPad)},
                                     {"strides", Tensor::i32(kStride)},
                                     {"dilations", Tensor::i32(kDilation)},
                                     {"groups", static_cast<int>(kGroups)}});
  ASSERT_NE(y, nullptr);
  ASSERT_EQ(y->type.shape(), (Shape{2, kGroups * kMade, kOutH, kOutW}));
  g.function().body().set_outputs({y});
  auto got = run(g.function(), g.inputs(), false);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  std::vector<double> want(static_cast<size_t>(y->type.shape().count()));
  const float* from = g.inputs()[0].as<float>().data();
  for (int64_t n = 0; n < 2; n++)
    for (int64_t c = 0; c < kIn; c++)
      for (int64_t m = 0; m < kMade; m++)
        for (int64_t h = 0; h < kH; h++)
          for (int64_t w = 0; w < kW; w++)
            for (int64_t kh = 0; kh < kKernelH; kh++)
              for (int64_t kw = 0; kw < kKernelW; kw++) {
                const int64_t oh = h * kStride[0] + kh * kDilation[0] - kPad[0],
                              ow = w * kStride[1] + kw * kDilation[1] - kPad[2];
                if (oh < 0 || oh >= kOutH || ow < 0 || ow >= kOutW) continue;
                const int64_t to = ((n * kGroups * kMade + c / (kIn / kGroups) * kMade + m) * kOutH + oh) * kOutW + ow;
                want[static_cast<size_t>(to)] +=
                    static_cast<double>(from[((n * kIn + c) * kH + h) * kW + w]) *
                    static_cast<double>(
                        weight.as<float>()[static_cast<size_t>(((c * kMade + m) * kKernelH + kh) * kKernelW + kw)]);
              }
  size_t odd = 0;
  for (size_t i = 0; i < want.size(); i++) {
    const auto made = static_cast<double>(got->outputs[0].as<float>()[i]);
    odd += !std::isfinite(want[i]);
    if (std::isfinite(want[i]))
      ASSERT_NEAR(made, want[i], 1e-5 * std::max(1.0, std::abs(want[i]))) << i;
    else
      ASSERT_TRUE(made == want[i] || (std::isnan(made) && std::isnan(want[i]))) << i << ": " << made << " " << want[i];
  }
  EXPECT_GT(odd, 0u);
  EXPECT_LT(odd, want.size());
}

TEST(CpuConvTranspose, WindowsSideBySide) {
  for (int64_t in : {16, 20, 33})
    for (int64_t out : {16, 17, 40, 48})
      for (int64_t down : {1, 2})
        for (int64_t across : {2, 3}) {
          SCOPED_TRACE(cat(in, " to ", out, ", ", down, " x ", across));
          for (int64_t width : {1, 9, 130}) {
            Graph g;
            std::vector<NamedArg> args{{"x", g.input({2, in, 3, width})},
                                       {"weight", g.random({in, out, down, across}, -0.2f, 0.2f)},
                                       {"strides", Tensor::i32({down, across})}};
            if (width > 1) args.emplace_back("bias", g.random({out}));
            Value* y = g.op("conv_transpose", args);
            if (width == 9) y->producer()->epilogue = {{"sigmoid"}};
            // A reader of the result's padding channels shows whether they are zeros.
            const auto r =
                expect_same(g, {g.op("conv", {{"x", y}, {"weight", g.random({16, out, 1, 1}, -0.2f, 0.2f)}})});
            if (devices::cpu::isa() != devices::cpu::Isa::base) {
              EXPECT_TRUE(r.has("cpu.conv_transpose.pixels")) << r.kernels;
            }
          }
        }
}

TEST(CpuConvLine, EveryWindow) {
  for (int64_t length : {1, 17, 300, 5000})
    for (int64_t taps : {1, 2, 7, 65})
      for (int64_t stride : {1, 2, 3})
        for (int64_t dilation : {1, 4})
          for (int64_t pad : {0, 5}) {
            if ((taps - 1) * dilation + 1 > length + 2 * pad) continue;
            SCOPED_TRACE(
                cat(length, " values, ", taps, " taps, stride ", stride, ", dilation ", dilation, ", pad ", pad));
            Graph g;
            Value* y = g.op("conv", {{"x", g.input({2, 4, length})},
                                     {"weight", g.random({2, 2, taps}, -0.3f, 0.3f)},
                                     {"bias", g.random({2})},
                                     {"strides", Tensor::i32({stride})},
                                     {"dilations", Tensor::i32({dilation})},
                                     {"groups", Tensor::scalar_i64(DType::int32, 2)},
                                     {"pad_type", Tensor::text("custom")},
                                     {"pad", Tensor::i32({pad, pad + 1})}});
            expect_same(g, {g.op("relu", {{"x", y}})});
          }
}

}  // namespace
}  // namespace moka::devices_test
