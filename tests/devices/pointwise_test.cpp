// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/pointwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Pointwise convolutions, compared with sums in double precision.
namespace moka::devices_test {
namespace {

using namespace ir;

struct PointwiseCase {
  int64_t images = 1, in, out;
  std::vector<int64_t> size;
  std::vector<Epilogue> epilogue{};
  bool bias = true, addend = false;
};

/// Whether the kernel takes this shape on this processor.
bool taken(const PointwiseCase& c) {
  const int64_t block = devices::cpu::channel_block();
  const bool pixel = std::all_of(c.size.begin(), c.size.end(), [](int64_t n) { return n == 1; });
  return devices::cpu::isa() != devices::cpu::Isa::base && c.in >= block && (c.out >= block || pixel);
}

Value* conv(Graph& g, Value* x, const Tensor& weight, const PointwiseCase& c) {
  std::vector<NamedArg> args{{"x", x}, {"weight", weight}};
  if (c.bias) args.emplace_back("bias", g.random({c.out}));
  return with_epilogue(g, g.op("conv", args), c.epilogue, c.addend);
}

Tensor weights(Graph& g, const PointwiseCase& c) {
  Shape s{c.out, c.in};
  for (size_t i = 0; i < c.size.size(); i++) s.push_back(1);
  return g.random(s);
}

Run check_pointwise(const PointwiseCase& c) {
  Graph g;
  Shape s{c.images, c.in};
  for (int64_t n : c.size) s.push_back(n);
  Value* x = g.input(s);
  Value* y = conv(g, x, weights(g, c), c);
  if (!taken(c)) return expect_same(g, {y}, 1e-5, true);
  return expect_same_by("cpu.conv.pointwise", g, y, 1e-5);
}

TEST(Pointwise, ChannelsAndPixels) {
  for (int64_t in : {1, 3, 8, 15, 16, 17, 31, 40, 100})
    for (int64_t out : {1, 2, 8, 15, 16, 17, 24, 33, 48, 49, 80, 100})
      for (const std::vector<int64_t>& size :
           std::vector<std::vector<int64_t>>{{1, 1}, {1, 2}, {3, 1}, {7, 7}, {5, 13}, {40, 41}}) {
        SCOPED_TRACE(cat(in, " to ", out, ", ", size[0], " x ", size[1]));
        check_pointwise({.images = 2, .in = in, .out = out, .size = size});
      }
}

TEST(Pointwise, EveryNumberOfPixels) {
  for (int64_t pixels = 1; pixels <= 60; pixels++)
    for (int64_t out : {16, 20, 24, 32, 40, 48}) {
      SCOPED_TRACE(cat(pixels, " ", out));
      check_pointwise({.in = 21, .out = out, .size = {pixels}});
    }
}

TEST(Pointwise, Ranks) {
  check_pointwise({.images = 2, .in = 20, .out = 40, .size = {37}});
  check_pointwise({.images = 2, .in = 20, .out = 40, .size = {5, 3, 7}});
}

/// More pixels than go through all panels at once.
TEST(Pointwise, LargeImages) {
  check_pointwise({.in = 40, .out = 70, .size = {70, 71}});
  check_pointwise({.in = 600, .out = 70, .size = {30, 31}});
}

TEST(Pointwise, EpiloguesAndAddends) {
  for (const auto& epilogue : sample_epilogues())
    for (int64_t out : {24, 33, 48, 50})
      for (bool bias : {true, false})
        for (bool addend : {true, false}) {
          SCOPED_TRACE(cat(epilogue.empty() ? "none" : epilogue[0].op, " ", out, bias, addend));
          check_pointwise(
              {.in = 20, .out = out, .size = {9, 11}, .epilogue = epilogue, .bias = bias, .addend = addend});
        }
}

/// Padding channels stay zero for the next convolution, also after e^0 = 1 and 0 * infinity.
TEST(Pointwise, Chains) {
  for (const std::vector<Epilogue>& epilogue : std::vector<std::vector<Epilogue>>{{{"exp"}}, {{"clip", 0.5f, 2}}, {}}) {
    Graph g;
    Tensor x = g.random({2, 20, 9, 8});
    if (epilogue.empty()) x.mut<float>()[77] = std::numeric_limits<float>::infinity();
    Value* a = conv(g, g.input_of(x), g.random({21, 20, 1, 1}), {2, 20, 21, {9, 8}, epilogue});
    Value* b = g.op("conv", {{"x", a}, {"weight", g.random({40, 21, 3, 3})}, {"pad_type", "same"}});
    expect_same(g, {b});
  }
}

/// The convolutions of a gate have few channels, which are blocked anyway.
TEST(Pointwise, FewChannelsBetweenBlocks) {
  Graph g;
  Value* a = g.op("conv", {{"x", g.input({1, 96, 1, 1})}, {"weight", g.random({4, 96, 1, 1})}});
  Value* b = g.op("conv", {{"x", a}, {"weight", g.random({96, 4, 1, 1})}, {"bias", g.random({96})}});
  const auto r = expect_same(g, {b});
  if (devices::cpu::isa() != devices::cpu::Isa::base) {
    EXPECT_TRUE(r.has("cpu.conv.pointwise cpu.conv.pointwise")) << r.kernels;
  }
}

TEST(Pointwise, OddInputsAndWeights) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "the kernel is for longer vectors";
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf("")})
    for (const char* after : {"", "relu", "relu6", "silu", "sigmoid", "moka_hard_swish"}) {
      SCOPED_TRACE(cat(odd, " ", after));
      Graph g;
      Tensor x = g.random({1, 20, 7, 9}), w = g.random({50, 20, 1, 1}, 0.5f, 1);
      for (size_t at : {0u, 100u, 1259u}) x.mut<float>()[at] = odd;
      w.mut<float>()[37 * 20 + 3] = odd;
      PointwiseCase c{1, 20, 50, {7, 9}};
      if (*after != 0) c.epilogue = {{after}};
      const auto r = expect_same(g, {conv(g, g.input_of(x), w, c)});
      int64_t finite = 0;
      for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
      EXPECT_GE(finite, 49 * 60);
    }
}

TEST(Pointwise, ThreadsGiveTheSameBits) {
  for (int64_t n : {1, 7, 14, 57}) {
    Graph g;
    Value* x = g.input({1, 130, n, n});
    Value* y = conv(g, x, g.random({470, 130, 1, 1}), {1, 130, 470, {n, n}, {{"silu"}}});
    expect_same_bits(g, y, "", cat(n));
  }
  // Divisions of so many pixels leave a single pixel after those that are finished at once.
  for (auto [height, width] : {std::array<int64_t, 2>{52, 52}, {113, 3}, {113, 8}, {225, 7}, {65, 73}}) {
    Graph g;
    Value* x = g.input({1, 384, height, width});
    Value* y = conv(g, x, g.random({33, 384, 1, 1}), {1, 384, 33, {height, width}, {{"leaky_relu", 0.1f}}});
    expect_same_bits(g, y, "", cat(height, " x ", width));
  }
}

/// Tests the loops of each instruction set directly. They must write nothing outside of the result.
TEST(Pointwise, EveryInstructionSet) {
  using devices::cpu::vector::Pointwise;
  std::vector<const Pointwise*> sets{&devices::cpu::vector::pointwise_base()};
#if defined(__x86_64__)
  if (devices::cpu::isa() >= devices::cpu::Isa::avx2) sets.push_back(&devices::cpu::vector::pointwise_avx2());
  if (devices::cpu::isa() >= devices::cpu::Isa::avx512) sets.push_back(&devices::cpu::vector::pointwise_avx512());
#endif
  std::mt19937 random(5);
  std::uniform_real_distribution<float> draw(-1, 1);
  const auto values = [&](int64_t n) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& f : v) f = draw(random);
    return v;
  };
  for (const Pointwise* p : sets)
    for (auto [in, taps] :
         {std::array<int64_t, 2>{1, 1}, {5, 1}, {16, 1}, {21, 1}, {21, 3}, {270, 1}, {130, 5}, {260, 2}})
      for (int64_t vectors = p->block / p->lanes; vectors <= 3; vectors += p->block / p->lanes)
        for (int64_t pixels = 1; pixels <= 31; pixels++) {
          const int64_t width = vectors * p->lanes, used = width - in % 3, plane = (pixels + 1) * p->block,
                        wide = (pixels + 2 * taps) * p->block;
          const std::vector<float> x = values((in + p->block - 1) / p->block * wide), bias = values(width);
          // Weights that float16 holds.
          std::vector<float> w = values(taps * in * width);
          const int64_t tap_at[] = {0, 2 * p->block, 4 * p->block, 6 * p->block, 8 * p->block};
          std::vector<uint16_t> halves(w.size());
          float_to_half(w.data(), halves.data(), w.size());
          half_to_float(halves.data(), w.data(), w.size());
          std::vector<float> y(static_cast<size_t>(width / p->block * plane), 7.0f);
          const float limits[] = {-0.75f, 1.5f};
          Pointwise::Call call{};
          call.x = x.data();
          call.x_step = wide;
          call.y_step = plane;
          call.in = in;
          call.taps = taps;
          call.tap_at = tap_at;
          call.weight = w.data();
          call.width = width;
          call.used = used;
          call.bias = bias.data();
          call.limits = in == 5 ? limits : nullptr;
          call.pixels = pixels;
          call.y = y.data();
          call.ahead = w.data();
          call.ahead_lines = 1;
          p->multiply(call);
          if (p->lanes >= 8) {
            std::vector<float> again(y.size(), 7.0f), widened(w.size());
            call.halves = halves.data();
            call.weight = call.widened = widened.data();
            call.y = again.data();
            p->multiply(call);
            ASSERT_EQ(again, y);
            ASSERT_EQ(widened, w);
          }
          for (int64_t o = 0; o < width; o++)
            for (int64_t i = 0; i <= pixels; i++) {
              const float made = y[static_cast<size_t>(o / p->block * plane + i * p->block + o % p->block)];
              if (i == pixels || o >= used) {
                ASSERT_EQ(made, i == pixels ? 7.0f : 0.0f);
                continue;
              }
              auto sum = static_cast<double>(bias[static_cast<size_t>(o)]);
              for (int64_t c = 0; c < taps * in; c++) {
                const int64_t k = c % in, at = k / p->block * wide + (i + 2 * (c / in)) * p->block + k % p->block;
                sum += static_cast<double>(x[static_cast<size_t>(at)]) *
                       static_cast<double>(w[static_cast<size_t>(c * width + o)]);
              }
              if (in == 5) sum = std::clamp(sum, -0.75, 1.5);
              ASSERT_NEAR(made, sum, in < 100 ? 1e-5 : 1e-4)
                  << p->lanes << " lanes, " << in << " channels, " << vectors << " vectors";
            }
        }
}

}  // namespace
}  // namespace moka::devices_test
