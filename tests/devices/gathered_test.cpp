// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "devices/cpu/isa.h"
#include "devices/cpu/vector/pointwise.h"
#include "devices/graph_util.h"

/// One-dimensional convolutions, and windows of one pixel between row-major and blocked layouts.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr std::string_view kGathered = "cpu.conv.gathered", kRows = "cpu.conv.rows";

struct GatheredCase {
  int64_t images = 1, in, out;
  std::vector<int64_t> size;
  int64_t taps = 1, stride = 1, dilation = 1, groups = 1;
  std::vector<int64_t> pad{};
  std::vector<Epilogue> epilogue{};
  bool bias = true, addend = false;
};

Value* conv(Graph& g, Value* x, const Tensor& weight, const GatheredCase& c) {
  const auto axes = c.size.size();
  std::vector<NamedArg> args{{"x", x},
                             {"weight", weight},
                             {"groups", static_cast<int>(c.groups)},
                             {"strides", Tensor::i32(std::vector<int64_t>(axes, c.stride))},
                             {"dilations", Tensor::i32(std::vector<int64_t>(axes, c.dilation))},
                             {"pad_type", "custom"},
                             {"pad", Tensor::i32(c.pad.empty() ? std::vector<int64_t>(2 * axes, 0) : c.pad)}};
  if (c.bias) args.emplace_back("bias", g.random({c.out}));
  return with_epilogue(g, g.op("conv", args), c.epilogue, c.addend);
}

Tensor gathered_weights(Graph& g, const GatheredCase& c) {
  Shape s{c.out, c.in / c.groups};
  for (size_t i = 0; i < c.size.size(); i++) s.push_back(c.taps);
  return g.random(s, -0.3f, 0.3f);
}

/// From rows to rows, from rows to blocks, from blocks to rows and between blocks.
void check_gathered(const GatheredCase& c) {
  for (bool from_blocks : {false, true})
    for (bool to_blocks : {false, true}) {
      const int64_t block = devices::cpu::vector::pointwise().block;
      const bool odd_in = c.in / c.groups % block != 0, odd_out = c.out / c.groups % block != 0;
      if (c.groups > 1 && ((from_blocks && odd_in) || (to_blocks && odd_out))) continue;
      SCOPED_TRACE(cat(c.in, " to ", c.out, ", size ", c.size.back(), ", ", c.taps, " taps, stride ", c.stride,
                       ", dilation ", c.dilation, ", ", c.groups, " groups", from_blocks ? ", from blocks" : "",
                       to_blocks ? ", to blocks" : ""));
      Graph g;
      Value* x = g.input(shape_of(c.images, c.in, c.size));
      const std::vector<int64_t> ones(c.size.size(), 1);
      if (from_blocks)
        x = g.op("conv",
                 {{"x", x}, {"weight", g.random(shape_of(c.in, 16, ones))}, {"groups", static_cast<int>(c.in / 16)}});
      Value* y = conv(g, x, gathered_weights(g, c), c);
      if (to_blocks) y = g.op("conv", {{"x", y}, {"weight", g.random(shape_of(32, c.out, ones))}});
      expect_same(g, {y}, 2e-5);
    }
}

void check_rows(const GatheredCase& c) {
  const int64_t block = devices::cpu::vector::pointwise().block;
  for (std::string_view kernel : {kGathered, kRows}) {
    if (kernel == kGathered && std::min(c.in, c.out) / c.groups < block) continue;
    SCOPED_TRACE(kernel);
    Graph g;
    Value* y = conv(g, g.input(shape_of(c.images, c.in, c.size)), gathered_weights(g, c), c);
    expect_same_by(kernel, g, y, 2e-5);
  }
}

/// Panels, vectors and last pixels that are not full, and channels in several runs.
TEST(Rows, Sizes) {
  for (int64_t in : {8, 9, 513, 1100})
    for (int64_t out : {8, 13, 15, 29, 43})
      for (int64_t size : {1, 3, 7, 8, 15, 17, 25, 32, 39, 48, 63, 250}) {
        SCOPED_TRACE(cat(in, " to ", out, ", ", size));
        for (const auto& epilogue : std::vector<std::vector<Epilogue>>{{}, {{"relu"}}})
          check_rows({.in = in, .out = out, .size = {size}, .epilogue = epilogue, .addend = size % 2 == 0});
      }
}

TEST(Rows, Strides) {
  for (int64_t stride : {1, 2, 3})
    for (int64_t width : {5, 16, 33}) {
      SCOPED_TRACE(cat(stride, " ", width));
      check_rows({.images = 2, .in = 40, .out = 30, .size = {12, width}, .stride = stride});
      check_rows({.images = 2, .in = 40, .out = 30, .size = {12, width}, .stride = stride, .groups = 2});
    }
}

TEST(Rows, Choice) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "by rule, the kernel is for longer vectors";
  for (const auto& [pixels, kernel] : {std::pair{784, kRows}, {47, kGathered}}) {
    Graph g;
    const GatheredCase c{.in = 1024, .out = 1024, .size = {pixels}};
    const auto r = expect_same(g, {conv(g, g.input({1, 1024, pixels}), gathered_weights(g, c), c)}, 2e-5);
    EXPECT_TRUE(r.has(kernel)) << pixels << ": " << r.kernels;
  }
}

TEST(Gathered, Channels) {
  for (int64_t in : {16, 17, 31, 40, 300})
    for (int64_t out : {16, 17, 24, 33, 49, 80})
      for (int64_t size : {1, 2, 30, 113, 225}) {
        SCOPED_TRACE(cat(in, " to ", out, ", ", size));
        check_rows({.images = 2, .in = in, .out = out, .size = {size}, .taps = 3, .pad = {1, 1}});
        check_rows({.images = 2, .in = in, .out = out, .size = {size}});
      }
}

TEST(Gathered, Windows) {
  for (int64_t taps : {2, 3, 7, 12})
    for (int64_t stride : {1, 2, 3, 5})
      for (int64_t dilation : {1, 2, 5})
        for (const std::vector<int64_t>& pad : std::vector<std::vector<int64_t>>{{0, 0}, {3, 1}, {70, 90}}) {
          SCOPED_TRACE(cat(taps, " taps, stride ", stride, ", dilation ", dilation, ", pad ", pad[0]));
          check_rows({.images = 2,
                      .in = 20,
                      .out = 40,
                      .size = {61},
                      .taps = taps,
                      .stride = stride,
                      .dilation = dilation,
                      .pad = pad});
        }
}

TEST(Gathered, Layouts) {
  for (int64_t in : {32, 48})
    for (int64_t out : {32, 50}) {
      check_gathered({.images = 2, .in = in, .out = out, .size = {13, 11}});
      check_gathered({.in = in, .out = out, .size = {13, 11}, .stride = 2});
      check_gathered({.in = in, .out = out, .size = {75}, .taps = 4, .stride = 2, .dilation = 3, .pad = {4, 5}});
      check_gathered({.in = in, .out = 64, .size = {9, 16}, .groups = 2});
      check_gathered({.in = in, .out = 96, .size = {40}, .taps = 5, .groups = 2, .pad = {2, 2}});
    }
}

TEST(Gathered, Groups) {
  for (int64_t groups : {2, 3})
    for (int64_t in : {16, 17, 24})
      for (int64_t out : {16, 21, 40}) {
        SCOPED_TRACE(cat(groups, " groups of ", in, " to ", out));
        check_rows({.in = groups * in, .out = groups * out, .size = {9, 10}, .groups = groups});
        check_rows({.in = groups * in, .out = groups * out, .size = {50}, .taps = 3, .groups = groups});
      }
}

TEST(Gathered, EpiloguesAndAddends) {
  for (const auto& epilogue : sample_epilogues())
    for (bool bias : {true, false})
      for (bool addend : {true, false}) {
        SCOPED_TRACE(cat(epilogue.empty() ? "none" : epilogue[0].op, bias, addend));
        check_rows({.in = 20, .out = 50, .size = {9, 14}, .epilogue = epilogue, .bias = bias, .addend = addend});
        check_gathered({.in = 32,
                        .out = 50,
                        .size = {126},
                        .taps = 3,
                        .pad = {1, 1},
                        .epilogue = epilogue,
                        .bias = bias,
                        .addend = addend});
      }
}

/// The same values, followed by memory that must not be read.
Tensor before_a_wall(const Tensor& t) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), size = (t.bytes() + page - 1) / page * page;
  void* p = mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(p, MAP_FAILED);
  auto* begin = static_cast<std::byte*>(p);
  EXPECT_EQ(mprotect(begin + size, page, PROT_NONE), 0);
  const std::shared_ptr<void> owner(p, [=](void* all) { munmap(all, size + page); });
  std::byte* at = begin + size - t.bytes();
  std::memcpy(at, t.data(), t.bytes());
  return Tensor::wrap(t.dtype(), t.shape(), Bytes{{at, t.bytes()}, owner}).value();
}

TEST(Gathered, NothingBehindTheInputIsRead) {
  for (int64_t in : {16, 17, 20, 31})
    for (const std::vector<int64_t>& size : std::vector<std::vector<int64_t>>{{1}, {2}, {5}, {1, 1}, {3, 5}}) {
      SCOPED_TRACE(cat(in, " channels, size ", size[0]));
      const GatheredCase c{.images = 2, .in = in, .out = 24, .size = size};
      for (std::string_view kernel : {kGathered, kRows}) {
        Graph g;
        Value* x = g.input_of(before_a_wall(g.random(shape_of(c.images, in, size))));
        expect_same_by(kernel, g, conv(g, x, gathered_weights(g, c), c), 2e-5);
      }
    }
}

/// An infinite weight times padding is NaN, and an infinite input spoils only the results that read it.
TEST(Gathered, OddInputsAndWeights) {
  const float inf = std::numeric_limits<float>::infinity();
  for (std::string_view kernel : {kGathered, kRows})
    for (float odd : {inf, -inf, std::nanf("")}) {
      Graph g;
      const GatheredCase c{.in = 20, .out = 50, .size = {200}, .taps = 3, .pad = {1, 1}};
      Tensor x = g.random({1, 20, 200}), w = gathered_weights(g, c);
      for (size_t at : {0u, 100u, 1259u}) x.mut<float>()[at] = odd;
      w.mut<float>()[37 * 60 + 3] = odd;
      const auto r = expect_same_by(kernel, g, conv(g, g.input_of(x), w, c));
      int64_t finite = 0;
      for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
      EXPECT_GE(finite, 49 * 190);
    }
}

TEST(Gathered, ThreadsGiveTheSameBits) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "by rule, the kernel is for longer vectors";
  for (int64_t size : {13, 49, 113, 225, 1000})
    for (int64_t taps : {1, 11}) {
      Graph g;
      const GatheredCase c{.in = 140, .out = 330, .size = {size}, .taps = taps, .pad = {taps / 2, taps / 2}};
      expect_same_bits(g, conv(g, g.input({1, 140, size}), gathered_weights(g, c), c), size > 200 ? kRows : "",
                       cat(size, " ", taps));
    }
}

}  // namespace
}  // namespace moka::devices_test
