// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "devices/graph_util.h"

/// Winograd convolutions of volumes, compared with sums in double precision.
namespace moka::devices_test {
namespace {

using namespace ir;

struct Volumes {
  int64_t images, in, out;
  std::vector<int64_t> size, taps;
  std::vector<int64_t> pad;  ///< empty: half a window on each side
  std::vector<int64_t> strides{1, 1, 1}, dilations{1, 1, 1};
  std::vector<Epilogue> epilogue{};

  std::string name() const {
    return cat(images, ", ", in, " to ", out, ", ", size[0], " x ", size[1], " x ", size[2], ", taps ", taps[0], " x ",
               taps[1], " x ", taps[2], " at every ", strides[0], ", ", strides[1]);
  }
};

Value* conv(Graph& g, Value* x, const Tensor& weight, const Volumes& c) {
  std::vector<int64_t> pad = c.pad;
  for (size_t i = 0; i < c.taps.size() && pad.size() < 6; i++) pad.insert(pad.end(), 2, c.taps[i] / 2);
  Value* y = g.op("conv", {{"x", x},
                           {"weight", weight},
                           {"bias", g.random({c.out})},
                           {"strides", Tensor::i32(c.strides)},
                           {"dilations", Tensor::i32(c.dilations)},
                           {"pad_type", "custom"},
                           {"pad", Tensor::i32(pad)}});
  if (y != nullptr) y->producer()->epilogue = c.epilogue;
  return y;
}

Shape input_of(const Volumes& c) { return {c.images, c.in, c.size[0], c.size[1], c.size[2]}; }
Shape weight_of(const Volumes& c) { return {c.out, c.in, c.taps[0], c.taps[1], c.taps[2]}; }

constexpr std::string_view kWinograd = "cpu.conv.winograd";

/// Windows with a transform along lines and columns, columns, lines, or slices.
const std::vector<std::vector<int64_t>> kTaps{{3, 3, 3}, {1, 3, 3}, {2, 3, 3}, {5, 3, 3}, {3, 1, 3},
                                              {3, 3, 1}, {3, 1, 1}, {7, 1, 1}, {2, 1, 5}, {1, 7, 1}};

TEST(WinogradVolumes, EveryWindowAndSize) {
  for (const auto& taps : kTaps)
    for (auto [in, out] : {std::pair<int64_t, int64_t>{16, 16}, {17, 40}, {40, 33}})
      for (const std::vector<int64_t>& size :
           std::vector<std::vector<int64_t>>{{7, 9, 11}, {1, 13, 14}, {16, 8, 5}, {3, 17, 6}}) {
        const Volumes c{2, in, out, size, taps};
        SCOPED_TRACE(c.name());
        Graph g;
        expect_same_by(kWinograd, g, conv(g, g.input(input_of(c)), g.random(weight_of(c)), c));
      }
}

TEST(WinogradVolumes, EveryPad) {
  for (const auto& taps : kTaps)
    for (const std::vector<int64_t>& pad : std::vector<std::vector<int64_t>>{
             {0, 0, 0, 0, 0, 0}, {2, 0, 0, 0, 0, 0}, {0, 3, 0, 0, 0, 0}, {1, 2, 0, 2, 3, 1}, {4, 0, 1, 0, 0, 5}}) {
      const bool slices = taps[1] == 1 && taps[2] == 1;  // with pixels of padding there is no transform
      if (slices && pad[2] + pad[3] + pad[4] + pad[5] > 0) continue;
      const Volumes c{1, 24, 16, {8, 9, 10}, taps, pad};
      SCOPED_TRACE(cat(c.name(), ", pad ", pad[0], pad[1], pad[2], pad[3], pad[4], pad[5]));
      Graph g;
      expect_same_by(kWinograd, g, conv(g, g.input(input_of(c)), g.random(weight_of(c)), c));
    }
}

TEST(WinogradVolumes, StridesOfSlicesThatAreNotSummed) {
  for (const std::vector<int64_t>& strides : std::vector<std::vector<int64_t>>{{2, 1, 1}, {3, 2, 2}, {1, 2, 2}}) {
    const Volumes c{.images = 2, .in = 24, .out = 40, .size = {7, 14, 15}, .taps = {1, 3, 3}, .strides = strides};
    SCOPED_TRACE(c.name());
    Graph g;
    expect_same_by(kWinograd, g, conv(g, g.input(input_of(c)), g.random(weight_of(c)), c));
  }
}

/// The cost model takes the transforms for the layers of nets, and oneDNN for what has none or is too small for them.
TEST(WinogradVolumes, ClaimsFollowTheSize) {
  const Volumes faster[] = {{1, 64, 64, {8, 28, 28}, {3, 3, 3}},
                            {1, 96, 96, {4, 14, 14}, {3, 3, 3}},
                            {1, 64, 64, {8, 28, 28}, {1, 3, 3}},
                            {1, 64, 144, {8, 28, 28}, {1, 3, 3}, {}, {1, 2, 2}},
                            {1, 144, 64, {8, 14, 14}, {3, 1, 1}}};
  for (const Volumes& c : faster) {
    SCOPED_TRACE(c.name());
    Graph g;
    const auto r = expect_same(g, {conv(g, g.input(input_of(c)), g.random(weight_of(c)), c)});
    EXPECT_TRUE(r.has(kWinograd)) << r.kernels;
  }
  const Volumes slower[] = {{1, 64, 64, {1, 2, 2}, {3, 3, 3}},
                            {1, 64, 64, {8, 14, 14}, {3, 3, 3}, {}, {2, 2, 2}},
                            {1, 64, 64, {8, 14, 14}, {3, 3, 3}, {}, {2, 1, 1}},
                            {1, 64, 64, {8, 14, 14}, {3, 3, 3}, {}, {1, 1, 1}, {2, 1, 1}},
                            {1, 64, 64, {8, 14, 14}, {3, 3, 3}, {}, {1, 1, 1}, {1, 2, 2}},
                            {1, 64, 64, {8, 14, 14}, {3, 1, 1}, {1, 1, 1, 0, 0, 0}},
                            {1, 64, 64, {8, 14, 14}, {2, 2, 2}},
                            {1, 64, 64, {8, 14, 14}, {1, 1, 1}}};
  for (const Volumes& c : slower) {
    SCOPED_TRACE(c.name());
    Graph g;
    const auto r = expect_same(g, {conv(g, g.input(input_of(c)), g.random(weight_of(c)), c)}, 1e-5, true);
    EXPECT_FALSE(r.has(kWinograd)) << r.kernels;
  }
}

/// The plan states the memory of transformed tiles, which stays small for large volumes.
TEST(WinogradVolumes, ScratchDoesNotGrowWithTheVolume) {
  size_t least = SIZE_MAX, most = 0;
  for (int64_t n : {16, 32}) {
    const Volumes c{1, 64, 64, {n, 2 * n, 2 * n}, {3, 3, 3}};
    Graph g;
    const auto r = run_by(kWinograd, g, conv(g, g.input(input_of(c)), g.random(weight_of(c)), c));
    for (const plan::Step& s : r.plan->sequence.steps)
      if (const plan::KernelCall* call = plan::kernel_of(s); call != nullptr && call->choice->kernel == kWinograd) {
        least = std::min(least, call->choice->thread_scratch);
        most = std::max(most, call->choice->thread_scratch);
      }
  }
  EXPECT_GT(least, 0u);
  EXPECT_LE(most, 2 * least);
  EXPECT_LE(most, size_t{8} << 20);
}

TEST(WinogradVolumes, Epilogues) {
  for (const std::vector<Epilogue>& epilogue : std::vector<std::vector<Epilogue>>{
           {{"relu"}}, {{"exp"}}, {{"silu"}}, {{"leaky_relu", 0.2f}, {"clip", -0.1f, 1.5f}}}) {
    SCOPED_TRACE(epilogue[0].op);
    Volumes c{2, 31, 47, {5, 12, 13}, {3, 3, 3}};
    c.epilogue = epilogue;
    Graph g;
    Value* x = conv(g, g.input(input_of(c)), g.random(weight_of(c), -0.1f, 0.1f), c);
    const Volumes next{2, 47, 32, {5, 12, 13}, {1, 3, 3}};
    expect_same(g, {conv(g, x, g.random(weight_of(next), -0.1f, 0.1f), next)});
  }
}

/// Infinities, NaN and numbers whose transform overflows affect only the voxels whose windows hold them.
TEST(WinogradVolumes, OddInputs) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float odd : {inf, -inf, std::nanf(""), 1e38f, 3e38f})
    for (const auto& taps : kTaps) {
      const Volumes c{2, 31, 32, {6, 11, 13}, taps};
      SCOPED_TRACE(cat(odd, ", ", c.name()));
      Graph g;
      Tensor x = g.random(input_of(c));
      const int64_t plane = 11 * 13, volume = 6 * plane;
      for (int64_t at : {int64_t{0}, 2 * plane + 5 * 13 + 7, 16 * volume + 5 * plane + 10 * 13 + 3, 62 * volume - 1})
        x.mut<float>()[static_cast<size_t>(at)] = odd;
      const auto r = expect_same_by(kWinograd, g, conv(g, g.input_of(x), g.random(weight_of(c)), c));
      int64_t finite = 0;
      for (float v : r.outputs[0].as<float>()) finite += std::isfinite(v);
      EXPECT_GE(finite, r.outputs[0].count() - 32 * 4 * taps[0] * taps[1] * taps[2]);
    }
}

/// Numbers whose transform overflows, though most sums do not, in a corner of the volume beside small ones.
TEST(WinogradVolumes, PartialOverflow) {
  for (const auto& taps : kTaps) {
    const Volumes c{1, 31, 32, {6, 17, 18}, taps};
    SCOPED_TRACE(c.name());
    Graph g;
    Tensor x = g.random(input_of(c));
    for (int64_t at = 0; at < x.count(); at++) {
      const int64_t h = at / 18 % 17, w = at % 18, d = at / (18 * 17) % 6;
      if (h < 9 && w < 10 && d < 4) x.mut<float>()[static_cast<size_t>(at)] = (h + w + d) % 3 == 0 ? -3e38f : 3e38f;
    }
    x.mut<float>()[5] = std::nanf("");
    x.mut<float>()[18 * 17 * 5 + 40] = std::numeric_limits<float>::infinity();
    expect_same_by(kWinograd, g, conv(g, g.input_of(x), g.random(weight_of(c), -0.02f, 0.02f), c));
  }
}

TEST(WinogradVolumes, OddWeights) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float odd : {inf, -inf, std::nanf("")})
    for (const auto& taps : kTaps)
      for (int part = 0; part < 3; part++) {
        const Volumes c{1, 32, 33, {5, 10, 11}, taps};
        const int64_t all = taps[0] * taps[1] * taps[2], tap = (all - 1) * part / 2;
        SCOPED_TRACE(cat(odd, ", ", c.name(), ", ", tap));
        Graph g;
        Tensor w = g.random(weight_of(c));
        w.mut<float>()[static_cast<size_t>((7 * 32 + 3) * all + tap)] = odd;
        expect_same_by(kWinograd, g, conv(g, g.input(input_of(c), 0.5f, 1), w, c));
      }
}

TEST(WinogradVolumes, ThreadsGiveTheSameBits) {
  for (const auto& taps : kTaps) {
    const Volumes c{1, 63, 127, {8, 16, 17}, taps};
    Graph g;
    Value* y = conv(g, g.input(input_of(c)), g.random(weight_of(c)), c);
    expect_same_bits(g, y, kWinograd, c.name());
  }
}

/// The bounds are those of images with as many products in a sum.
TEST(WinogradVolumes, ErrorIsNearThatOfDirectSums) {
  struct Bound {
    Volumes volumes;
    double largest, rms;
  };
  const Bound bounds[] = {{{1, 64, 32, {6, 28, 28}, {3, 3, 3}}, 7e-6, 1e-6},
                          {{1, 192, 32, {4, 14, 14}, {3, 3, 3}}, 7e-6, 1e-6},
                          {{1, 64, 32, {6, 28, 28}, {1, 3, 3}}, 3e-6, 4e-7},
                          {{1, 192, 32, {12, 14, 14}, {3, 1, 1}}, 2e-6, 3e-7}};
  for (const Bound& b : bounds) {
    SCOPED_TRACE(b.volumes.name());
    Graph g;
    Value* y = conv(g, g.input(input_of(b.volumes)), g.random(weight_of(b.volumes)), b.volumes);
    const auto r = run_by(kWinograd, g, y);
    expect_error_below(g, r, b.largest, b.rms);
  }
}

}  // namespace
}  // namespace moka::devices_test
