#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Convolutions of 3 x 3 taps at every pixel. What is compared with are sums in double precision.
namespace moka::devices_test {
namespace {

using namespace ir;

struct Case {
  int64_t images, in, out, height, width;
  std::vector<int64_t> pad{1, 1, 1, 1};
  std::vector<Epilogue> epilogue;
  bool bias = true;
};

/// Whether channels fill a block; others run elsewhere.
bool fills(int64_t channels) { return channels >= devices::cpu::channel_block(); }

Value* conv(Graph& g, Value* x, const Tensor& weight, const Case& c) {
  std::vector<NamedArg> args{{"x", x}, {"weight", weight}, {"pad_type", "custom"}, {"pad", Tensor::i32(c.pad)}};
  if (c.bias) args.emplace_back("bias", g.random({c.out}));
  Value* y = g.op("conv", args);
  if (y != nullptr) y->producer()->epilogue = c.epilogue;
  return y;
}

Run check(const Case& c) {
  Graph g;
  Value* x = g.input({c.images, c.in, c.height, c.width});
  return expect_same(g, {conv(g, x, g.random({c.out, c.in, 3, 3}), c)});
}

bool has(const Run& r, std::string_view text) { return r.kernels.find(text) != std::string::npos; }

TEST(Winograd, SizesChannelsAndPads) {
  for (int64_t in : {1, 8, 16, 17, 31, 40})
    for (int64_t out : {8, 16, 17, 33, 40})
      for (auto [height, width] : {std::pair<int64_t, int64_t>{13, 14}, {16, 24}, {23, 21}, {40, 11}})
        for (const std::vector<int64_t>& pad :
             std::vector<std::vector<int64_t>>{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {0, 2, 1, 0}, {3, 0, 0, 5}}) {
          SCOPED_TRACE(cat(in, " to ", out, ", ", height, " x ", width, ", pad ", pad[0], pad[1], pad[2], pad[3]));
          const auto r = check({2, in, out, height, width, pad});
          if (pad == std::vector<int64_t>{1, 1, 1, 1}) {
            EXPECT_EQ(has(r, "cpu.conv.winograd"), fills(in) && fills(out)) << r.kernels;
          }
        }
}

TEST(Winograd, EveryWidthAndHeight) {
  for (int64_t height = 1; height <= 20; height++)
    for (int64_t width = height % 3 + 3; width <= 37; width += 3) {
      SCOPED_TRACE(cat(height, " x ", width));
      check({1, 16, 16, height, width});
    }
}

TEST(Winograd, TilesFollowTheSize) {
  for (int64_t n : {20, 28, 56, 71}) EXPECT_TRUE(has(check({1, 64, 64, n, n}), "cpu.conv.winograd4")) << n;
  for (int64_t n : {13, 14}) EXPECT_TRUE(has(check({1, 128, 128, n, n}), "cpu.conv.winograd2")) << n;
  for (int64_t n : {1, 2, 4, 5}) EXPECT_TRUE(has(check({1, 64, 64, n, n}), "cpu.conv.onednn")) << n;
  EXPECT_TRUE(has(check({1, 3, 64, 56, 56}), "cpu.conv.onednn"));
}

TEST(Winograd, Epilogues) {
  const std::vector<std::vector<Epilogue>> all{{{"relu"}},
                                               {{"relu6"}},
                                               {{"sigmoid"}},
                                               {{"tanh"}},
                                               {{"silu"}},
                                               {{"gelu"}},
                                               {{"gelu_tanh"}},
                                               {{"softplus"}},
                                               {{"abs"}},
                                               {{"square"}},
                                               {{"exp"}},
                                               {{"moka_hard_swish"}},
                                               {{"elu", 0.7f}},
                                               {{"leaky_relu", 0.2f}, {"clip", -0.1f, 1.5f}},
                                               {{"square"}, {"sqrt"}},
                                               {{"sigmoid_hard", 0.2f, 0.5f}, {"linear_activation", 2, 3}}};
  for (const auto& epilogue : all)
    for (int64_t n : {14, 23})
      for (bool bias : {true, false}) {
        SCOPED_TRACE(cat(epilogue[0].op, " ", n, bias));
        Graph g;
        Value* x = g.input({1, 17, n, n});
        const auto r = expect_same(
            g, {conv(g, x, g.random({33, 17, 3, 3}, -0.1f, 0.1f), {1, 17, 33, n, n, {1, 1, 1, 1}, epilogue, bias})});
        EXPECT_TRUE(has(r, "cpu.conv.winograd")) << r.kernels;
      }
}

/// The channels that fill up a block are zero again after e^0 = 1.
TEST(Winograd, Chains) {
  Graph g;
  Value* x = g.input({2, 20, 23, 25});
  Case first{2, 20, 21, 23, 25};
  first.epilogue = {{"exp"}};
  Value* a = conv(g, x, g.random({21, 20, 3, 3}, -0.1f, 0.1f), first);
  const auto r = expect_same(g, {conv(g, a, g.random({18, 21, 3, 3}), {2, 21, 18, 23, 25})});
  EXPECT_TRUE(has(r, "winograd4 cpu.conv.winograd")) << r.kernels;
}

/// Infinities, NaN and numbers whose transform overflows touch the pixels under their windows alone.
TEST(Winograd, OddInputs) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf(""), 1e38f})
    for (int64_t n : {14, 21}) {
      SCOPED_TRACE(cat(odd, " ", n));
      Graph g;
      Tensor x = g.random({1, 17, n, n});
      for (int64_t at : {int64_t{0}, 5 * n + 7, 16 * n * n + (n - 1) * n + 3, 9 * n * n + n * n - 1})
        x.mut<float>()[static_cast<size_t>(at)] = odd;
      Case c{1, 17, 18, n, n};
      const auto r = expect_same(g, {conv(g, g.input_of(x), g.random({18, 17, 3, 3}), c)});
      EXPECT_TRUE(has(r, "cpu.conv.winograd")) << r.kernels;
      int64_t finite = 0;
      for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
      EXPECT_GT(finite, 18 * (n * n - 5 * 9) - 1);
    }
}

TEST(Winograd, OddWeights) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf("")})
    for (int64_t n : {14, 21})
      for (int64_t tap = 0; tap < 9; tap++) {
        SCOPED_TRACE(cat(odd, " ", n, " ", tap));
        Graph g;
        Tensor w = g.random({33, 17, 3, 3});
        w.mut<float>()[static_cast<size_t>((7 * 17 + 3) * 9 + tap)] = odd;
        w.mut<float>()[static_cast<size_t>((32 * 17 + 16) * 9 + 8 - tap)] = odd;
        Case c{1, 17, 33, n, n};
        const auto r = expect_same(g, {conv(g, g.input({1, 17, n, n}, 0.5f, 1), w, c)});
        EXPECT_TRUE(has(r, "cpu.conv.winograd")) << r.kernels;
        int64_t plain = 0;
        for (float v : r.outputs[0].as<float>()) plain += std::isfinite(v);
        EXPECT_GE(plain, 31 * n * n);
      }
}

TEST(Winograd, ThreadsGiveTheSameBits) {
  for (int64_t n : {14, 48, 71}) {
    Graph g;
    Value* x = g.input({1, 65, n, n});
    Value* y = conv(g, x, g.random({130, 65, 3, 3}), {1, 65, 130, n, n});
    g.function().body().set_outputs({y});
    const auto one = run(g.function(), g.inputs(), true, 1);
    ASSERT_TRUE(one.ok()) << one.error().to_string();
    EXPECT_TRUE(has(*one, "cpu.conv.winograd")) << one->kernels;
    for (int threads : {2, 3}) {
      const auto more = run(g.function(), g.inputs(), true, threads, 3);
      ASSERT_TRUE(more.ok()) << more.error().to_string();
      const auto a = one->outputs[0].as<float>(), b = more->outputs[0].as<float>();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << n << " with " << threads;
    }
  }
}

/// Errors of fp32 relative to the largest output, of 300 tiles of 64 and 512 channels, normal inputs and weights:
///
///   points                       64 largest / rms     512 largest / rms
///   0, +-1, +-2, infinity        4.6e-6 / 4.4e-7      1.4e-5 / 1.2e-6
///   0, +-1/2, +-1, infinity      6.4e-6 / 4.6e-7      1.0e-5 / 1.1e-6
///   0, +-1/2, +-2, infinity      2.1e-6 / 2.7e-7      6.7e-6 / 7.4e-7
///   0, +-3/4, +-3/2, infinity    1.2e-6 / 2.2e-7      4.1e-6 / 5.7e-7
///   0, +-root 1/2, +-root 2      1.2e-6 / 2.0e-7      3.5e-6 / 5.6e-7   <- those of 4 x 4 tiles
///   0, +-1, infinity (2 x 2)     3.7e-7 / 8.1e-8      9.2e-7 / 2.1e-7
///   one tap after another        7.8e-7               2.1e-6
TEST(Winograd, ErrorIsNearThatOfDirectSums) {
  struct Bound {
    int64_t channels, size;
    double largest, rms;
  };
  for (const Bound& b :
       {Bound{64, 28, 3e-6, 4e-7}, {64, 14, 1e-6, 2e-7}, {512, 28, 7e-6, 1e-6}, {512, 14, 2e-6, 5e-7}}) {
    Graph g;
    Value* x = g.input({1, b.channels, b.size, b.size});
    Value* y = conv(g, x, g.random({32, b.channels, 3, 3}), {1, b.channels, 32, b.size, b.size});
    const auto r = expect_same(g, {y});
    EXPECT_TRUE(has(r, "cpu.conv.winograd")) << r.kernels;
    const auto truth = run(g.function(), g.inputs(), false, 1);
    ASSERT_TRUE(truth.ok()) << truth.error().to_string();
    const auto made = r.outputs[0].as<float>(), want = truth->outputs[0].as<float>();
    double scale = 0, largest = 0, squares = 0;
    for (size_t i = 0; i < want.size(); i++) {
      const double off = static_cast<double>(made[i]) - static_cast<double>(want[i]);
      scale = std::max(scale, std::fabs(static_cast<double>(want[i])));
      largest = std::max(largest, std::fabs(off));
      squares += off * off;
    }
    EXPECT_LE(largest, b.largest * scale) << b.channels << " channels";
    EXPECT_LE(std::sqrt(squares / static_cast<double>(want.size())), b.rms * scale) << b.channels << " channels";
  }
}

}  // namespace
}  // namespace moka::devices_test
