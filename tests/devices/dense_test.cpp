// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <random>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Convolutions with any window between blocked channels.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr std::string_view kDenseKernel = "cpu.conv.dense";

struct DenseCase {
  int64_t images, groups, in, out;  ///< in, out: channels per group
  std::vector<int64_t> size, taps, strides, dilations, pad;

  std::string text() const {
    std::string s = cat(images, " images, ", groups, " groups of ", in, " to ", out);
    for (size_t i = 0; i < size.size(); i++)
      s += cat("; ", size[i], ": ", taps[i], " taps, stride ", strides[i], ", dilation ", dilations[i], ", pad ",
               pad[2 * i], " ", pad[2 * i + 1]);
    return s;
  }
};

Value* conv(Graph& g, Value* x, const Tensor& weight, const DenseCase& c, bool bias = true) {
  std::vector<NamedArg> args{{"x", x},
                             {"weight", weight},
                             {"groups", static_cast<int>(c.groups)},
                             {"strides", Tensor::i32(c.strides)},
                             {"dilations", Tensor::i32(c.dilations)},
                             {"pad_type", "custom"},
                             {"pad", Tensor::i32(c.pad)}};
  if (bias) args.emplace_back("bias", g.random({c.groups * c.out}));
  return g.op("conv", args);
}

Value* conv(Graph& g, const DenseCase& c, bool bias = true) {
  return conv(g, g.input(shape_of(c.images, c.groups * c.in, c.size)),
              g.random(shape_of(c.groups * c.out, c.in, c.taps), -0.3f, 0.3f), c, bias);
}

/// Any case that the kernel supports.
DenseCase random_case(std::mt19937& bits) {
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits); };
  DenseCase c{draw(1, 2), draw(0, 3) == 0 ? draw(2, 3) : 1, draw(1, 70), draw(1, 70), {}, {}, {}, {}, {}};
  if (c.groups > 1) {
    const int64_t block = devices::cpu::channel_block();
    c.in = block * draw(1, 3);
    c.out = block * draw(1, 4);
  }
  const int64_t axes = draw(1, 3), most = axes == 1 ? 40 : axes == 2 ? 19 : 7;
  for (int64_t i = 0; i < axes; i++) {
    c.size.push_back(draw(1, most));
    c.taps.push_back(draw(1, axes == 1 ? 9 : 4));
    c.strides.push_back(draw(1, 3));
    c.dilations.push_back(draw(1, 3));
    const int64_t extent = (c.taps.back() - 1) * c.dilations.back() + 1;
    const int64_t before = draw(0, 4), least = std::max<int64_t>(0, extent - c.size.back() - before);
    c.pad.insert(c.pad.end(), {before, draw(least, least + 3)});
  }
  return c;
}

TEST(Dense, RandomCases) {
  std::mt19937 bits(7);
  for (int i = 0; i < 150; i++) {
    const DenseCase c = random_case(bits);
    SCOPED_TRACE(c.text());
    Graph g(Opset::ios17, static_cast<unsigned>(i));
    g.threads = 1 + i % 3;
    Value* y = with_epilogue(g, conv(g, c, i % 4 != 0),
                             sample_epilogues()[static_cast<size_t>(i) % sample_epilogues().size()], i % 5 == 0);
    ASSERT_NE(y, nullptr);
    expect_same_by(kDenseKernel, g, y);
  }
}

/// Few channels and no padding: windows read row-major images in place.
TEST(Dense, RowsOfFewChannels) {
  std::mt19937 bits(9);
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits); };
  for (int i = 0; i < 60; i++) {
    DenseCase c{draw(1, 2), 1, draw(1, devices::cpu::channel_block() - 1), draw(1, 60), {}, {}, {}, {}, {}};
    const int64_t axes = draw(1, 2);
    for (int64_t axis = 0; axis < axes; axis++) {
      c.taps.push_back(draw(1, 20));
      c.strides.push_back(draw(1, 20));
      c.dilations.push_back(axis + 1 < axes ? draw(1, 2) : 1);
      c.size.push_back((c.taps.back() - 1) * c.dilations.back() + draw(1, axes == 1 ? 300 : 40));
      c.pad.insert(c.pad.end(), {0, 0});
    }
    SCOPED_TRACE(c.text());
    Graph g(Opset::ios17, static_cast<unsigned>(i));
    g.threads = 1 + i % 3;
    Value* y = with_epilogue(g, conv(g, c, i % 4 != 0),
                             sample_epilogues()[static_cast<size_t>(i) % sample_epilogues().size()], i % 5 == 0);
    ASSERT_NE(y, nullptr);
    expect_same_by(kDenseKernel, g, y);
  }
}

TEST(Dense, EveryNumberOfPixels) {
  for (int64_t out : {8, 16, 24, 33, 48, 80})
    for (int64_t width = 1; width <= 23; width++) {
      SCOPED_TRACE(cat(out, " channels, ", width, " pixels"));
      Graph g;
      expect_same_by(kDenseKernel, g, conv(g, {1, 1, 19, out, {1, width}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}));
    }
}

TEST(Dense, BitsDoNotDependOnThreads) {
  for (const DenseCase& c : {DenseCase{1, 1, 40, 72, {19, 23}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
                             DenseCase{1, 1, 600, 100, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
                             DenseCase{2, 3, 48, 32, {14, 14}, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
                             DenseCase{1, 1, 64, 64, {301}, {7}, {1}, {3}, {9, 9}},
                             DenseCase{1, 1, 3, 96, {96, 96}, {16, 16}, {16, 16}, {1, 1}, {0, 0, 0, 0}}}) {
    SCOPED_TRACE(c.text());
    Graph g;
    Value* y = with_epilogue(g, conv(g, c), {{"silu"}}, false);
    std::vector<Tensor> results;
    for (g.threads = 1; g.threads <= 4; g.threads++) results.push_back(run_by(kDenseKernel, g, y).outputs[0]);
    const auto one = results[0].as<float>();
    for (const Tensor& t : results) {
      const auto more = t.as<float>();
      EXPECT_TRUE(std::equal(one.begin(), one.end(), more.begin(), more.end()));
    }
  }
}

/// Infinite and NaN inputs reach exactly the results that read them, and such weights also those that read padding.
TEST(Dense, OddNumbers) {
  const DenseCase c{1, 1, 19, 35, {9, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  for (float odd : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Graph g;
    Tensor x = g.random({1, 19, 9, 20}), weight = g.random({35, 19, 3, 3});
    for (size_t i : {7u, 18u * 180 + 100}) x.mut<float>()[i] = odd;
    expect_same_by(kDenseKernel, g, with_epilogue(g, conv(g, g.input_of(x), weight, c), {{"relu6"}}, false));
    for (size_t i : {0u, 17u * 19 * 9 + 8, 34u * 19 * 9 + 40}) weight.mut<float>()[i] = odd;
    Graph h;
    expect_same_by(kDenseKernel, h, conv(h, h.input({1, 19, 9, 20}), weight, c));
  }
}

}  // namespace
}  // namespace moka::devices_test
