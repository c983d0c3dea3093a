// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Convolutions with groups that do not fill blocks of channels.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr std::string_view kGroupsKernel = "cpu.conv.groups";

struct GroupsCase {
  int64_t images, groups, in, out, height, width;  ///< in, out: channels per group
  std::vector<int64_t> taps{3, 3}, strides{1, 1}, pad{1, 1, 1, 1};
  int64_t dilation = 1;  ///< between rows of the window
};

Value* conv(Graph& g, Value* x, const Tensor& weight, const GroupsCase& c) {
  return g.op("conv", {{"x", x},
                       {"weight", weight},
                       {"bias", g.random({c.groups * c.out})},
                       {"groups", static_cast<int>(c.groups)},
                       {"strides", Tensor::i32(c.strides)},
                       {"dilations", Tensor::i32({c.dilation, 1})},
                       {"pad_type", "custom"},
                       {"pad", Tensor::i32(c.pad)}});
}

Value* conv(Graph& g, const GroupsCase& c) {
  return conv(g, g.input({c.images, c.groups * c.in, c.height, c.width}),
              g.random({c.groups * c.out, c.in, c.taps[0], c.taps[1]}, -0.3f, 0.3f), c);
}

TEST(Groups, Channels) {
  for (int64_t groups : {2, 3, 7})
    for (int64_t in : {1, 2, 5, 8, 12, 16, 17, 24})
      for (int64_t out : {1, 3, 8, 10, 16, 24, 37}) {
        SCOPED_TRACE(cat(groups, " groups of ", in, " to ", out));
        Graph g;
        expect_same_by(kGroupsKernel, g, conv(g, {2, groups, in, out, 5, 9}));
      }
}

TEST(Groups, Windows) {
  for (const std::vector<int64_t>& taps :
       std::vector<std::vector<int64_t>>{{1, 1}, {3, 3}, {1, 5}, {5, 1}, {2, 4}, {7, 3}})
    for (const std::vector<int64_t>& strides : std::vector<std::vector<int64_t>>{{1, 1}, {2, 2}, {1, 3}, {3, 1}})
      for (const std::vector<int64_t>& pad :
           std::vector<std::vector<int64_t>>{{0, 0, 0, 0}, {1, 2, 3, 0}, {9, 9, 20, 1}, {4, 0, 0, 30}})
        for (int64_t dilation : {1, 2}) {
          SCOPED_TRACE(cat(taps[0], " x ", taps[1], " at every ", strides[0], ", ", strides[1], ", pad ", pad[0], " ",
                           pad[1], " ", pad[2], " ", pad[3], ", dilation ", dilation));
          Graph g;
          expect_same_by(kGroupsKernel, g, conv(g, {1, 3, 12, 20, 15, 19, taps, strides, pad, dilation}));
        }
}

TEST(Groups, EpiloguesAndAddends) {
  for (const std::vector<Epilogue>& epilogue :
       std::vector<std::vector<Epilogue>>{{}, {{"relu"}}, {{"exp"}}, {{"leaky_relu", 0.2f}, {"clip", -0.1f, 1.5f}}})
    for (bool addend : {false, true})
      for (int threads : {1, 2}) {
        Graph g;
        g.threads = threads;
        Value* y = conv(g, {2, 5, 24, 12, 14, 14});
        if (addend) y->producer()->set_input("addend", {g.input(y->type.shape())});
        y->producer()->epilogue = epilogue;
        expect_same_by(kGroupsKernel, g, y);
      }
}

/// Nothing is converted between blocked convolutions, and the padding of the last block stays zero.
TEST(Groups, BetweenOthers) {
  const int64_t block = devices::cpu::channel_block();
  for (int64_t strides : {1, 2}) {
    Graph g;
    Value* x = g.op("conv", {{"x", g.input({1, 16, 28, 28})}, {"weight", g.random({5 * (block + 4), 16, 1, 1})}});
    Value* y = conv(g, x, g.random({5 * (block + 4), block + 4, 3, 3}, -0.1f, 0.1f),
                    {1, 5, block + 4, block + 4, 28, 28, {3, 3}, {strides, strides}});
    const auto r =
        expect_same(g, {g.op("conv", {{"x", y}, {"weight", g.random({32, 5 * (block + 4), 1, 1}, -0.1f, 0.1f)}})});
    EXPECT_TRUE(r.has(kGroupsKernel)) << r.kernels;
    if (devices::cpu::isa() == devices::cpu::Isa::base) continue;  // pointwise convolutions are row-major there
    EXPECT_FALSE(r.has(cat("convert ", kGroupsKernel))) << r.kernels;
    EXPECT_FALSE(r.has(cat(kGroupsKernel, " convert"))) << r.kernels;
  }
}

/// A NaN stays in its group.
TEST(Groups, OddNumbers) {
  for (float odd : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Graph g;
    Tensor x = g.random({1, 72, 6, 20});
    for (int64_t channel : {0, 30, 71})
      x.mut<float>()[static_cast<size_t>(channel * 120 + 3 * 20 + channel % 20)] = odd;
    expect_same_by(kGroupsKernel, g, conv(g, g.input_of(x), g.random({72, 24, 3, 3}), {1, 3, 24, 24, 6, 20}));
  }
}

TEST(Groups, ThreadsGiveTheSameBits) {
  Graph g;
  expect_same_bits(g, conv(g, {2, 14, 20, 20, 27, 31}), kGroupsKernel, "threads");
}

}  // namespace
}  // namespace moka::devices_test
