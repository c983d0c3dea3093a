// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/common/winograd_tiles.h"
#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Winograd convolutions, compared with sums in double precision.
namespace moka::devices_test {
namespace {

using namespace devices::cpu;
using namespace ir;

struct WinogradCase {
  int64_t images = 1, in, out, height, width;
  std::vector<int64_t> pad{1, 1, 1, 1};
  std::vector<Epilogue> epilogue{};
  bool bias = true;
  std::vector<int64_t> taps{3, 3}, strides{1, 1};
};

/// The windows that have transforms.
struct WinogradWindow {
  std::vector<int64_t> taps, strides;
};
const WinogradWindow kWindows[] = {{{3, 3}, {1, 1}}, {{3, 3}, {2, 2}}, {{1, 3}, {1, 1}}, {{3, 1}, {1, 1}},
                                   {{1, 5}, {1, 1}}, {{5, 1}, {1, 1}}, {{1, 7}, {1, 1}}, {{7, 1}, {1, 1}},
                                   {{5, 5}, {1, 1}}, {{7, 7}, {1, 1}}, {{5, 3}, {1, 1}}, {{2, 5}, {1, 1}},
                                   {{4, 7}, {1, 1}}, {{9, 3}, {1, 1}}};

/// With half of a window as padding on each side.
WinogradCase case_of(const WinogradWindow& w, int64_t images, int64_t in, int64_t out, int64_t height, int64_t width) {
  const int64_t down = w.taps[0] / 2, across = w.taps[1] / 2;
  return {images, in, out, height, width, {down, down, across, across}, {}, true, w.taps, w.strides};
}

std::string name(const WinogradWindow& w) { return cat(w.taps[0], " x ", w.taps[1], " by ", w.strides[0]); }

/// Whether channels fill a block. Other kernels run the rest.
bool fills(int64_t channels) { return channels >= devices::cpu::channel_block(); }

Value* conv(Graph& g, Value* x, const Tensor& weight, const WinogradCase& c) {
  std::vector<NamedArg> args{{"x", x},
                             {"weight", weight},
                             {"strides", Tensor::i32(c.strides)},
                             {"pad_type", "custom"},
                             {"pad", Tensor::i32(c.pad)}};
  if (c.bias) args.emplace_back("bias", g.random({c.out}));
  Value* y = g.op("conv", args);
  if (y != nullptr) y->producer()->epilogue = c.epilogue;
  return y;
}

Run run_winograd(const WinogradCase& c) {
  Graph g;
  Value* x = g.input({c.images, c.in, c.height, c.width});
  return expect_same(g, {conv(g, x, g.random({c.out, c.in, c.taps[0], c.taps[1]}), c)});
}

TEST(Winograd, SizesChannelsAndPads) {
  for (int64_t in : {1, 8, 16, 17, 31, 40})
    for (int64_t out : {8, 16, 17, 33, 40})
      for (auto [height, width] : {std::pair<int64_t, int64_t>{13, 14}, {16, 24}, {23, 21}, {40, 11}})
        for (const std::vector<int64_t>& pad :
             std::vector<std::vector<int64_t>>{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {0, 2, 1, 0}, {3, 0, 0, 5}}) {
          SCOPED_TRACE(cat(in, " to ", out, ", ", height, " x ", width, ", pad ", pad[0], pad[1], pad[2], pad[3]));
          const auto r =
              run_winograd({.images = 2, .in = in, .out = out, .height = height, .width = width, .pad = pad});
          if (pad == std::vector<int64_t>{1, 1, 1, 1}) {
            if (!fills(in)) {
              EXPECT_FALSE(r.has("cpu.conv.winograd")) << r.kernels;
            } else if (in == 40 && out == 40) {
              EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
            }
          }
        }
}

TEST(Winograd, EveryWidthAndHeight) {
  for (int64_t height = 1; height <= 20; height++)
    for (int64_t width = height % 3 + 3; width <= 37; width += 3) {
      SCOPED_TRACE(cat(height, " x ", width));
      run_winograd({.in = 16, .out = 16, .height = height, .width = width});
    }
}

TEST(Winograd, EveryWindow) {
  for (const WinogradWindow& w : kWindows)
    for (auto [in, out] : {std::pair<int64_t, int64_t>{5, 16}, {17, 33}, {40, 24}})
      for (auto [height, width] : {std::pair<int64_t, int64_t>{17, 17}, {12, 31}}) {
        SCOPED_TRACE(cat(name(w), ": ", in, " to ", out, ", ", height, " x ", width));
        run_winograd(case_of(w, 2, in, out, height, width));
      }
}

TEST(Winograd, EveryPadAndSize) {
  for (const WinogradWindow& w : kWindows)
    for (int64_t height = 6; height < 12; height++)
      for (int64_t width = height % 3 + 9; width < 20; width += 4) {
        SCOPED_TRACE(cat(name(w), ": ", height, " x ", width));
        WinogradCase c = case_of(w, 1, 24, 16, height, width);
        c.pad = {height % 4, width % 3 + w.taps[0] / 2, width % 5, height % 2 + w.taps[1] / 2};
        run_winograd(c);
      }
}

/// Winograd runs the shapes for which it is faster than direct convolution.
TEST(Winograd, ClaimsFollowTheSize) {
  const auto* const direct = devices::cpu::isa() == devices::cpu::Isa::base ? "cpu.conv.onednn" : "cpu.conv.dense";
  for (int64_t n : {20, 28, 56, 71})
    EXPECT_TRUE(run_winograd({.in = 64, .out = 64, .height = n, .width = n}).has("cpu.conv.winograd(4 x 4)")) << n;
  for (int64_t n : {7, 8})
    EXPECT_TRUE(run_winograd({.in = 128, .out = 128, .height = n, .width = n}).has("cpu.conv.winograd(2 x 2)")) << n;
  for (int64_t n : {1, 2, 3})
    EXPECT_TRUE(run_winograd({.in = 64, .out = 64, .height = n, .width = n}).has(direct)) << n;
  EXPECT_FALSE(run_winograd({.in = 3, .out = 64, .height = 56, .width = 56}).has("cpu.conv.winograd"));
  for (const WinogradWindow& w : kWindows)
    EXPECT_TRUE(run_winograd(case_of(w, 1, 96, 96, 64, 64)).has("cpu.conv.winograd")) << name(w);
  for (const WinogradWindow& w :
       {WinogradWindow{{3, 3}, {3, 3}}, {{3, 3}, {2, 1}}, {{1, 7}, {2, 2}}, {{2, 2}, {1, 1}}, {{3, 11}, {1, 1}}})
    EXPECT_TRUE(run_winograd(case_of(w, 1, 64, 64, 40, 40)).has(direct)) << name(w);
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
    for (int64_t n : {16, 23})
      for (bool bias : {true, false}) {
        SCOPED_TRACE(cat(epilogue[0].op, " ", n, bias));
        Graph g;
        Value* x = g.input({1, 31, n, n});
        const auto r = expect_same(
            g, {conv(g, x, g.random({47, 31, 3, 3}, -0.1f, 0.1f), {1, 31, 47, n, n, {1, 1, 1, 1}, epilogue, bias})});
        EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
      }
}

/// Padding channels are zero again after e^0 = 1.
TEST(Winograd, Chains) {
  Graph g;
  Value* x = g.input({2, 31, 23, 25});
  WinogradCase first{2, 31, 45, 23, 25};
  first.epilogue = {{"exp"}};
  Value* a = conv(g, x, g.random({45, 31, 3, 3}, -0.05f, 0.05f), first);
  const auto r = expect_same(g, {conv(g, a, g.random({30, 45, 3, 3}), WinogradCase{2, 45, 30, 23, 25})});
  EXPECT_TRUE(r.has("winograd(4 x 4) cpu.conv.winograd")) << r.kernels;
}

/// Infinities, NaN and numbers whose transform overflows affect only the pixels whose windows hold them.
TEST(Winograd, OddInputs) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf(""), 1e38f})
    for (const WinogradWindow& w : kWindows) {
      SCOPED_TRACE(cat(odd, " ", name(w)));
      constexpr int64_t n = 40;
      Graph g;
      Tensor x = g.random({1, 47, n, n});
      for (int64_t at : {int64_t{0}, 5 * n + 7, 16 * n * n + (n - 1) * n + 3, 46 * n * n + n * n - 1})
        x.mut<float>()[static_cast<size_t>(at)] = odd;
      const WinogradCase c = case_of(w, 1, 47, 47, n, n);
      const auto r = expect_same(g, {conv(g, g.input_of(x), g.random({47, 47, w.taps[0], w.taps[1]}), c)});
      EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
      int64_t finite = 0;
      for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
      EXPECT_GE(finite, r.outputs[0].count() - 47 * 4 * w.taps[0] * w.taps[1]);
    }
}

/// Numbers whose transform overflows, though most sums do not, in a corner of the image beside small ones.
TEST(Winograd, PartialOverflow) {
  for (const float huge : {1e38f, 3e38f})
    for (const WinogradWindow& w : kWindows)
      for (const auto& epilogue : {std::vector<Epilogue>{}, {{"relu"}}, {{"abs"}}}) {
        SCOPED_TRACE(cat(huge, " ", name(w), " ", epilogue.size()));
        constexpr int64_t n = 40;
        Graph g;
        Tensor x = g.random({2, 47, n, n});
        for (int64_t c = 0; c < 2 * 47; c++)
          for (int64_t i = 0; i < 17; i++)
            for (int64_t j = 0; j < 19; j++)
              x.mut<float>()[static_cast<size_t>((c * n + i) * n + j)] = (i + j + c) % 3 == 0 ? -huge : huge;
        x.mut<float>()[3 * n + 5] = std::nanf("");
        x.mut<float>()[4 * n * n + 30 * n + 5] = std::numeric_limits<float>::infinity();
        WinogradCase c = case_of(w, 2, 47, 47, n, n);
        c.epilogue = epilogue;
        const auto r =
            expect_same(g, {conv(g, g.input_of(x), g.random({47, 47, w.taps[0], w.taps[1]}, -0.02f, 0.02f), c)});
        EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
      }
}

/// Infinities and NaN that lie apart: some pixels of a tile see one, others do not.
TEST(Winograd, ScatteredOddInputs) {
  for (float odd : {std::numeric_limits<float>::infinity(), std::nanf(""), 3e38f})
    for (const WinogradWindow& w : kWindows) {
      SCOPED_TRACE(cat(odd, " ", name(w)));
      constexpr int64_t n = 40;
      Graph g;
      Tensor x = g.random({1, 47, n, n});
      for (int64_t at = 3; at < 47 * n * n; at += 2237) x.mut<float>()[static_cast<size_t>(at)] = odd;
      const WinogradCase c = case_of(w, 1, 47, 47, n, n);
      const auto r = expect_same(g, {conv(g, g.input_of(x), g.random({47, 47, w.taps[0], w.taps[1]}, 0, 1), c)});
      EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
    }
}

/// Few tiles of an image overflow, in the middle and at the end.
TEST(Winograd, FewOverflowingTiles) {
  for (const WinogradWindow& w : kWindows)
    for (const int64_t images : {1, 2}) {
      SCOPED_TRACE(cat(name(w), " ", images));
      constexpr int64_t n = 40;
      Graph g;
      Tensor x = g.random({images, 47, n, n});
      const auto put = [&](int64_t c, int64_t i, int64_t j) {
        x.mut<float>()[static_cast<size_t>((((images - 1) * 47 + c) * n + i) * n + j)] = 3e38f;
      };
      put(5, 20, 17);
      put(46, n - 1, n - 2);
      const WinogradCase c = case_of(w, images, 47, 47, n, n);
      const auto r = expect_same(g, {conv(g, g.input_of(x), g.random({47, 47, w.taps[0], w.taps[1]}, -0.1f, 0.1f), c)});
      EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
    }
}

/// A tile that overflows takes the second transform, not direct sums, which would read the weights.
TEST(Winograd, OverflowReadsNoWeights) {
  const vector::Winograds& all = vector::winograds();
  for (const vector::Winograd* f = all.begin; f != all.begin + all.count; f++) {
    SCOPED_TRACE(f - all.begin);
    WinogradBlocking p{};
    p.f = f;
    p.w.rank = 3;
    const int64_t high = f->down.out, wide = 2 * f->across.out, block = all.block;
    p.w.kernel = {1, f->down.taps, f->across.taps};
    p.w.strides = {1, f->down.stride, f->across.stride};
    p.w.pads_begin = {0, 0, 0};
    p.w.in = {1, high * f->down.stride, wide * f->across.stride};
    p.w.out = {1, high, wide};
    p.in = p.out = block;
    p.in_groups = p.out_groups = 1;
    p.in_step = p.out_step = 2 * p.panel();
    const Row row{0, 0, 0, 0, 2, 0};
    const std::vector<float> x(static_cast<size_t>(p.w.in_count() * block), 3e38f),
        products(static_cast<size_t>(f->points() * p.out_step), 0x1p63f), bias(static_cast<size_t>(block));
    const size_t count = static_cast<size_t>(high * wide * block);
    std::vector<float> y(count, std::numeric_limits<float>::infinity());
    const Taps unread{};
    p.chunk = 2;
    std::vector<uint8_t> seen(static_cast<size_t>(p.chunk * (1 + p.pixels())));
    NonFiniteWindows non_finite(p, x.data(), seen.data());
    DirectSums direct(p, x.data(), unread, bias.data(), 0);
    EXPECT_TRUE(correct_tiles(p, non_finite, direct, row, y.data()));
    for (float v : y) EXPECT_EQ(v, std::numeric_limits<float>::infinity());
    correct_again(p, non_finite, direct, row, bias.data(), products.data(), y.data());
    direct.finish();
    std::vector<float> small(count);
    f->output(products.data(), p.out_step, p.panel(), bias.data(), 2, high, wide, small.data(), wide * block);
    for (size_t i = 0; i < count; i++) EXPECT_EQ(y[i], small[i] * 0x1p64f);
  }
}

/// Weight zero times an infinite input is NaN. A small weight keeps its sign.
TEST(Winograd, OddInputsAndZeroWeights) {
  for (const WinogradWindow& w : kWindows) {
    SCOPED_TRACE(name(w));
    Graph g;
    Tensor x = g.random({1, 48, 40, 40});
    x.mut<float>()[40 * 15 + 14] = std::numeric_limits<float>::infinity();
    Tensor weight = g.random({48, 48, w.taps[0], w.taps[1]});
    for (size_t i = 0; i < static_cast<size_t>(weight.count()); i += 5)
      weight.mut<float>()[i] *= i / 10 % 2 == 0 ? 0 : 1e-20f;
    const auto r = expect_same(g, {conv(g, g.input_of(x), weight, case_of(w, 1, 48, 48, 40, 40))});
    EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
    int64_t nan = 0;
    for (float v : r.outputs[0].as<float>()) nan += std::isnan(v);
    EXPECT_GT(nan, 0);
  }
}

TEST(Winograd, OddWeights) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float odd : {inf, -inf, std::nanf("")})
    for (const WinogradWindow& window : kWindows)
      for (int part = 0; part < 3; part++) {
        const int64_t taps = window.taps[0] * window.taps[1], tap = (taps - 1) * part / 2;
        SCOPED_TRACE(cat(odd, " ", name(window), " ", tap));
        constexpr int64_t n = 40;
        Graph g;
        Tensor w = g.random({48, 48, window.taps[0], window.taps[1]});
        w.mut<float>()[static_cast<size_t>((7 * 48 + 3) * taps + tap)] = odd;
        w.mut<float>()[static_cast<size_t>((47 * 48 + 16) * taps + taps - 1 - tap)] = odd;
        const WinogradCase c = case_of(window, 1, 48, 48, n, n);
        const auto r = expect_same(g, {conv(g, g.input({1, 48, n, n}, 0.5f, 1), w, c)});
        EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
        int64_t plain = 0;
        for (float v : r.outputs[0].as<float>()) plain += std::isfinite(v);
        EXPECT_GE(plain, 46 * r.outputs[0].count() / 48);
      }
}

/// A window that holds a NaN gives NaN in every channel. Such a tile is filled without reading the weights, which would
/// take a hundred times as long as the transforms.
TEST(Winograd, WindowsOfNaNReadNoWeights) {
  const vector::Winograds& all = vector::winograds();
  WinogradBlocking p{};
  p.f = std::find_if(all.begin, all.begin + all.count, [](const vector::Winograd& f) {
    return f.down.taps == 3 && f.across.taps == 3 && f.down.stride == 1;
  });
  p.w.rank = 3;
  const int64_t high = p.f->down.out, wide = 2 * p.f->across.out;
  p.w.kernel = {1, 3, 3};
  p.w.strides = {1, 1, 1};
  p.w.pads_begin = {0, 1, 1};
  p.w.in = p.w.out = {1, high, wide};
  p.in = all.block;
  p.out = all.block - 1;
  p.in_groups = p.out_groups = 1;
  const size_t count = static_cast<size_t>(high * wide * all.block);
  const float nan = std::nanf("");
  const std::vector<float> x(count, nan), bias(static_cast<size_t>(all.block));
  std::vector<float> y(count, nan);
  p.chunk = 2;
  std::vector<uint8_t> seen(static_cast<size_t>(p.chunk * (1 + p.pixels())));
  NonFiniteWindows non_finite(p, x.data(), seen.data());
  const Taps unread{};
  DirectSums direct(p, x.data(), unread, bias.data(), 0);
  EXPECT_FALSE(correct_tiles(p, non_finite, direct, {0, 0, 0, 0, 2, 0}, y.data()));
  direct.finish();
  for (size_t i = 0; i < count; i++) EXPECT_EQ(std::isnan(y[i]), static_cast<int64_t>(i) % all.block < p.out) << i;
}

/// Weights that are scaled when they are packed are not kept unpacked for the tiles that are computed directly.
TEST(Winograd, OddInputsAndScaledWeights) {
  Graph g;
  Tensor x = g.random({1, 32, 20, 20});
  x.mut<float>()[20 * 9 + 8] = std::numeric_limits<float>::infinity();
  Tensor scale = Tensor::zeros(DType::fp64, {32}).value(), one = Tensor::zeros(DType::fp64, {1}).value();
  one.mut<double>()[0] = 1;
  for (size_t i = 0; i < 32; i++) scale.mut<double>()[i] = 0.25 * static_cast<double>(i) - 3;
  Value* weight = g.op("moka_scale_weights", {{"weight", g.constant(g.random({32, 32, 3, 3}))},
                                              {"input_scale", one},
                                              {"output_scale", scale},
                                              {"groups", 1},
                                              {"transposed", false}});
  ASSERT_NE(weight, nullptr);
  const auto r = expect_same(g, {g.op("conv", {{"x", g.input_of(x)}, {"weight", weight}, {"pad_type", "same"}})});
  EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
  for (const plan::Place& place : r.plan->sequence.places)
    EXPECT_TRUE(place.value != weight || std::get<plan::Constant>(place.storage).tensor.empty_handle());
}

/// Tiles that are computed directly read the weights as the file stores them.
TEST(Winograd, OddInputsAndStoredWeights) {
  const int64_t n = 20;
  for (int form = 0; form < 4; form++) {
    SCOPED_TRACE(form);
    Graph g(ir::Opset::ios18);
    Tensor x = g.random({1, 32, n, n});
    x.mut<float>()[n * 9 + 8] = std::numeric_limits<float>::infinity();
    const Shape shape{32, 32, 3, 3};
    Tensor elements = Tensor::zeros(form == 0   ? DType::fp16
                                    : form == 1 ? DType::int8
                                    : form == 2 ? DType::uint4
                                                : DType::int4,
                                    shape)
                          .value();
    for (size_t i = 0; i < elements.bytes(); i++)
      elements.mut<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + i / 7) & (form == 0 && i % 2 == 1 ? 0xbbu : 0xffu);
    Value* weight = nullptr;
    if (form == 0) weight = g.op("cast", {{"x", g.constant(elements)}, {"dtype", "fp32"}});
    if (form == 1)
      weight = g.op("constexpr_affine_dequantize", {{"quantized_data", g.constant(elements)},
                                                    {"zero_point", g.constant(Tensor::scalar(DType::int8, 3))},
                                                    {"scale", g.constant(g.random({32}, 0.01f, 0.02f))},
                                                    {"axis", g.constant(Tensor::scalar(DType::int32, 0))}});
    if (form == 2)
      weight = g.op("constexpr_lut_to_dense",
                    {{"indices", g.constant(elements)}, {"lut", g.constant(g.random({2, 1, 1, 1, 16, 1}))}});
    if (form == 3)
      weight = g.op("constexpr_blockwise_shift_scale",
                    {{"data", g.constant(elements)}, {"scale", g.constant(g.random({32, 4, 1, 1}, 0.1f, 0.2f))}});
    ASSERT_NE(weight, nullptr);
    Value* y = g.op("conv", {{"x", g.input_of(x)}, {"weight", weight}, {"pad_type", "same"}});
    const auto r = expect_same(g, {y});
    EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
    int64_t odd = 0;
    for (float v : r.outputs[0].as<float>()) odd += !std::isfinite(v);
    EXPECT_EQ(odd, 32 * 9);
  }
}

TEST(Winograd, ThreadsGiveTheSameBits) {
  for (const WinogradWindow& w : kWindows)
    for (int64_t n : {40, 57}) {
      Graph g;
      Value* x = g.input({1, 63, n, n});
      Value* y = conv(g, x, g.random({127, 63, w.taps[0], w.taps[1]}), case_of(w, 1, 63, 127, n, n));
      expect_same_bits(g, y, "cpu.conv.winograd", cat(name(w), n));
    }
}

/// Errors in fp32 relative to the largest output, for 300 tiles of 64 and 512 channels with normal inputs and weights:
///
///   points                       64 largest / rms     512 largest / rms
///   0, +-1, +-2, infinity        4.6e-6 / 4.4e-7      1.4e-5 / 1.2e-6
///   0, +-1/2, +-1, infinity      6.4e-6 / 4.6e-7      1.0e-5 / 1.1e-6
///   0, +-1/2, +-2, infinity      2.1e-6 / 2.7e-7      6.7e-6 / 7.4e-7
///   0, +-3/4, +-3/2, infinity    1.2e-6 / 2.2e-7      4.1e-6 / 5.7e-7
///   0, +-root 1/2, +-root 2      1.2e-6 / 2.0e-7      3.5e-6 / 5.6e-7   <- those of 4 x 4 tiles
///   0, +-1, infinity (2 x 2)     3.7e-7 / 8.1e-8      9.2e-7 / 2.1e-7
///   direct convolution           7.8e-7               2.1e-6
///
/// With seven taps in a row and 192 channels, tiles of 3 pixels have 3.2e-6 / 4.8e-7 and tiles of 4 have 5.3e-6
/// / 6.9e-7.
TEST(Winograd, ErrorIsNearThatOfDirectSums) {
  struct Bound {
    WinogradWindow window;
    int64_t channels, size;
    double largest, rms;
  };
  const WinogradWindow three{.taps = {3, 3}, .strides = {1, 1}}, half{.taps = {3, 3}, .strides = {2, 2}};
  const Bound bounds[] = {
      {.window = three, .channels = 64, .size = 28, .largest = 3e-6, .rms = 4e-7},
      {.window = three, .channels = 64, .size = 7, .largest = 3e-6, .rms = 4e-7},
      {.window = three, .channels = 512, .size = 28, .largest = 7e-6, .rms = 1e-6},
      {.window = three, .channels = 512, .size = 7, .largest = 7e-6, .rms = 1e-6},
      {.window = half, .channels = 192, .size = 56, .largest = 3e-6, .rms = 4e-7},
      {.window = half, .channels = 192, .size = 35, .largest = 3e-6, .rms = 4e-7},
      {.window = {.taps = {1, 3}, .strides = {1, 1}}, .channels = 192, .size = 40, .largest = 2e-6, .rms = 3e-7},
      {.window = {.taps = {1, 5}, .strides = {1, 1}}, .channels = 192, .size = 40, .largest = 4e-6, .rms = 6e-7},
      {.window = {.taps = {5, 5}, .strides = {1, 1}}, .channels = 192, .size = 35, .largest = 4e-6, .rms = 6e-7},
      {.window = {.taps = {1, 7}, .strides = {1, 1}}, .channels = 192, .size = 17, .largest = 6e-6, .rms = 8e-7},
      {.window = {.taps = {7, 1}, .strides = {1, 1}}, .channels = 192, .size = 17, .largest = 6e-6, .rms = 8e-7},
  };
  for (const Bound& b : bounds) {
    SCOPED_TRACE(cat(name(b.window), ", ", b.channels, " channels, ", b.size));
    Graph g;
    Value* x = g.input({1, b.channels, b.size, b.size});
    Value* y = conv(g, x, g.random({32, b.channels, b.window.taps[0], b.window.taps[1]}),
                    case_of(b.window, 1, b.channels, 32, b.size, b.size));
    const auto r = expect_same(g, {y});
    EXPECT_TRUE(r.has("cpu.conv.winograd")) << r.kernels;
    expect_error_below(g, r, b.largest, b.rms);
  }
}

}  // namespace
}  // namespace moka::devices_test
