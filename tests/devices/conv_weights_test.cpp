// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <limits>
#include <random>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Gradients of the weights of convolutions.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr std::string_view kWeightsKernel = "cpu.conv.weights";

struct WeightsCase {
  int64_t images, in, out, groups;
  std::vector<int64_t> size, result, taps, strides, dilations, pad;

  std::string text() const {
    std::string s = cat(images, " images, ", in, " to ", out, ", ", groups, " groups");
    for (size_t i = 0; i < size.size(); i++)
      s += cat("; ", size[i], " to ", result[i], ": ", taps[i], " taps, stride ", strides[i], ", dilation ",
               dilations[i], ", pad ", pad[i]);
    return s;
  }
};

Value* weights_gradient(Graph& g, Value* x, Value* dy, const WeightsCase& c) {
  return g.op("moka_conv_weights_gradient", {{"x", x},
                                             {"dy", dy},
                                             {"kernel", Tensor::i32(c.taps)},
                                             {"strides", Tensor::i32(c.strides)},
                                             {"dilations", Tensor::i32(c.dilations)},
                                             {"pad", Tensor::i32(c.pad)},
                                             {"groups", static_cast<int>(c.groups)}});
}

void check_weights(std::string_view kernel, const WeightsCase& c, int i) {
  SCOPED_TRACE(c.text());
  Graph g(Opset::ios17, static_cast<unsigned>(i));
  Value* y =
      weights_gradient(g, g.input(shape_of(c.images, c.in, c.size)), g.input(shape_of(c.images, c.out, c.result)), c);
  ASSERT_NE(y, nullptr);
  std::vector<Tensor> results;
  for (g.threads = 1; g.threads <= 3; g.threads++) {
    ASSERT_NO_FATAL_FAILURE(expect_same_by(kernel, g, y));
    results.push_back(run_by(kernel, g, y).outputs[0]);
    EXPECT_EQ(0, std::memcmp(results[0].data(), results.back().data(), results[0].bytes())) << g.threads << " threads";
  }
}

WeightsCase random_weights(std::mt19937& bits, int kind) {
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits); };
  WeightsCase c{draw(1, 3), draw(1, 70), draw(1, 70), 1, {}, {}, {}, {}, {}, {}};
  if (kind == 1) {
    c.groups = draw(2, 4);
    c.in = c.groups * draw(1, 20);
    c.out = c.groups * draw(1, 20);
  } else if (kind == 2) {
    c.groups = draw(2, 3);
    c.in = c.groups * draw(1, 2) * 16;
    c.out = c.groups * draw(1, 3) * 16;
  }
  const int64_t axes = draw(1, 3), most = axes == 1 ? 600 : axes == 2 ? 19 : 6;
  for (int64_t i = 0; i < axes; i++) {
    c.size.push_back(draw(1, most));
    c.taps.push_back(draw(1, axes == 1 ? 19 : 5));
    c.strides.push_back(draw(1, 3));
    c.dilations.push_back(draw(1, 3) == 1 ? 2 : 1);
    c.pad.push_back(draw(-2, 6));
    c.result.push_back(draw(1, most));
  }
  return c;
}

TEST(ConvWeights, RandomCases) {
  std::mt19937 bits(31);
  for (int i = 0; i < 240; i++) check_weights(kWeightsKernel, random_weights(bits, i % 3), i);
}

constexpr std::string_view kDepthwiseWeights = "cpu.conv.weights.depthwise";

TEST(DepthwiseWeights, RandomCases) {
  std::mt19937 bits(33);
  for (int i = 0; i < 240; i++) {
    WeightsCase c = random_weights(bits, 0);
    if (c.size.size() > 2) continue;
    c.out = c.groups = c.in;
    if (i % 3 == 0)
      for (size_t axis = 0; axis < c.size.size(); axis++) {
        c.taps[axis] = std::array{3, 5, 7}[static_cast<size_t>(i) / 3 % 3];
        c.dilations[axis] = 1;
      }
    check_weights(kDepthwiseWeights, c, i);
  }
}

TEST(DepthwiseWeights, EveryWidth) {
  for (int64_t width = 1; width <= 20; width++)
    for (const int64_t taps : {3, 5, 7})
      for (const int64_t stride : {1, 2})
        check_weights(kDepthwiseWeights,
                      {2,
                       20,
                       20,
                       20,
                       {9, width},
                       {(8 / stride) + 1, (width - 1) / stride + 1},
                       {taps, taps},
                       {stride, stride},
                       {1, 1},
                       {taps / 2, taps / 2}},
                      static_cast<int>(width));
}

TEST(ConvWeights, LayersOfNets) {
  check_weights(kWeightsKernel, {2, 3, 64, 1, {38, 45}, {19, 23}, {7, 7}, {2, 2}, {1, 1}, {3, 3}}, 1);
  check_weights(kWeightsKernel, {2, 96, 130, 1, {28, 28}, {28, 28}, {1, 1}, {1, 1}, {1, 1}, {0, 0}}, 2);
  check_weights(kWeightsKernel, {3, 200, 72, 1, {7, 7}, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 3);
  check_weights(kWeightsKernel, {1, 16, 24, 1, {3000}, {1500}, {3}, {2}, {1}, {1}}, 4);
}

/// What no tap reads does not count, and what taps read stays in its channels.
TEST(ConvWeights, OddNumbers) {
  for (const int64_t in : {3, 20})
    for (const float odd : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      SCOPED_TRACE(cat(in, " channels, ", odd));
      const WeightsCase c{1, in, 18, 1, {5, 9}, {2, 4}, {3, 3}, {2, 2}, {1, 1}, {0, 0}};
      Graph g;
      Tensor x = g.random(shape_of(1, in, c.size), 0.5f, 1);
      x.mut<float>()[20] = x.mut<float>()[45 + 8] = odd;
      Value* y = weights_gradient(g, g.input_of(x), g.input(shape_of(1, 18, c.result), 0.5f), c);
      ASSERT_NE(y, nullptr);
      expect_same_by(kWeightsKernel, g, y);
    }
}

}  // namespace
}  // namespace moka::devices_test
