// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>
#include <random>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Transposed convolutions to few channels, and of each channel alone.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr std::string_view kColumnsKernel = "cpu.conv_transpose.columns",
                           kDepthwiseKernel = "cpu.conv_transpose.depthwise";

struct TransposedCase {
  int64_t images, in, out, groups;
  std::vector<int64_t> size, taps, strides, dilations, pad, result;

  std::string text() const {
    std::string s = cat(images, " images, ", in, " to ", out, ", ", groups, " groups");
    for (size_t i = 0; i < size.size(); i++)
      s += cat("; ", size[i], " to ", result[i], ": ", taps[i], " taps, stride ", strides[i], ", dilation ",
               dilations[i], ", pad ", pad[2 * i], " ", pad[2 * i + 1]);
    return s;
  }
};

Value* transposed(Graph& g, Value* x, const Tensor& weight, const TransposedCase& c, bool bias) {
  std::vector<int64_t> result{c.images, c.out};
  result.insert(result.end(), c.result.begin(), c.result.end());
  std::vector<NamedArg> args{{"x", x},
                             {"weight", weight},
                             {"groups", static_cast<int>(c.groups)},
                             {"strides", Tensor::i32(c.strides)},
                             {"dilations", Tensor::i32(c.dilations)},
                             {"pad_type", "custom"},
                             {"pad", Tensor::i32(c.pad)},
                             {"output_shape", Tensor::i32(result)}};
  if (bias) args.emplace_back("bias", g.random({c.out}));
  return g.op("conv_transpose", args);
}

TransposedCase random_transposed(std::mt19937& bits, bool depthwise) {
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits); };
  TransposedCase c{draw(1, 2), draw(1, 60), draw(1, 5), 1, {}, {}, {}, {}, {}, {}};
  if (depthwise) c.groups = c.out = c.in;
  const int64_t axes = draw(1, depthwise ? 2 : 3), most = axes == 1 ? 60 : axes == 2 ? 13 : 5;
  for (int64_t i = 0; i < axes; i++) {
    c.size.push_back(draw(1, most));
    c.taps.push_back(draw(1, axes == 1 ? 20 : 5));
    c.strides.push_back(draw(1, axes == 1 ? 9 : 4));
    c.dilations.push_back(draw(1, 3));
    const int64_t whole = (c.size.back() - 1) * c.strides.back() + (c.taps.back() - 1) * c.dilations.back() + 1;
    const int64_t before = draw(0, std::min<int64_t>(4, whole - 1));
    c.pad.insert(c.pad.end(), {before, draw(0, std::min<int64_t>(3, whole - 1 - before))});
    c.result.push_back(whole - before - c.pad.back() + draw(0, c.strides.back() - 1));
  }
  return c;
}

void check_transposed(std::string_view kernel, const TransposedCase& c, int i) {
  SCOPED_TRACE(c.text());
  Graph g(Opset::ios17, static_cast<unsigned>(i));
  Value* y = transposed(g, g.input(shape_of(c.images, c.in, c.size)),
                        g.random(shape_of(c.in, c.out / c.groups, c.taps), -0.3f, 0.3f), c, i % 4 != 0);
  ASSERT_NE(y, nullptr);
  y = with_epilogue(g, y, sample_epilogues()[static_cast<size_t>(i) % sample_epilogues().size()], false);
  std::vector<Tensor> results;
  for (g.threads = 1; g.threads <= 3; g.threads++) {
    ASSERT_NO_FATAL_FAILURE(expect_same_by(kernel, g, y));
    results.push_back(run_by(kernel, g, y).outputs[0]);
    EXPECT_EQ(0, std::memcmp(results[0].data(), results.back().data(), results[0].bytes())) << g.threads << " threads";
  }
}

TEST(TransposedColumns, RandomCases) {
  std::mt19937 bits(21);
  for (int i = 0; i < 120; i++) check_transposed(kColumnsKernel, random_transposed(bits, false), i);
}

TEST(TransposedColumns, LargeResultsAreMadeInBands) {
  check_transposed(kColumnsKernel, {1, 33, 3, 1, {40, 70}, {5, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {81, 140}}, 1);
  check_transposed(kColumnsKernel, {1, 20, 2, 1, {3000}, {24}, {6}, {1}, {9, 9}, {18000}}, 2);
  check_transposed(kColumnsKernel,
                   {2, 18, 1, 1, {9, 12, 11}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {17, 23, 21}}, 3);
}

TEST(TransposedDepthwise, RandomCases) {
  std::mt19937 bits(22);
  for (int i = 0; i < 120; i++) check_transposed(kDepthwiseKernel, random_transposed(bits, true), i);
}

TEST(TransposedDepthwise, LargeMapsAreMadeInBands) {
  check_transposed(kDepthwiseKernel, {1, 37, 37, 37, {60, 90}, {4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {120, 180}}, 1);
  check_transposed(kDepthwiseKernel, {1, 16, 16, 16, {30, 50}, {5, 8}, {1, 4}, {1, 1}, {2, 2, 2, 2}, {30, 200}}, 2);
}

/// Infinite and NaN weights stay under the input.
TEST(Transposed, OddWeights) {
  for (const bool depthwise : {false, true}) {
    const TransposedCase c{
        1, 19, depthwise ? 19 : 3, depthwise ? 19 : 1, {4, 5}, {4, 3}, {2, 2}, {1, 1}, {1, 1, 1, 0}, {8, 10}};
    Graph g;
    Tensor weight = g.random(shape_of(c.in, c.out / c.groups, c.taps), 0.5f, 1.0f);
    for (size_t i : {0u, 100u, 227u}) weight.mut<float>()[i] = std::numeric_limits<float>::infinity();
    weight.mut<float>()[50] = std::nanf("");
    Value* y = transposed(g, g.input(shape_of(c.images, c.in, c.size), 0.5f), weight, c, true);
    ASSERT_NE(y, nullptr);
    expect_same_by(depthwise ? kDepthwiseKernel : kColumnsKernel, g, y);
  }
}

}  // namespace
}  // namespace moka::devices_test
