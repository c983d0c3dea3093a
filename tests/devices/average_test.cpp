// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <random>

#include "devices/graph_util.h"

/// Average pooling of blocked channels.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr std::string_view kAverageKernel = "cpu.avg_pool";

struct AverageCase {
  int64_t images, channels;
  std::vector<int64_t> size, taps, strides, pad;
  bool exclude = false, ceil = false;

  std::string text() const {
    std::string s = cat(images, " images, ", channels, " channels", exclude ? ", inside" : "", ceil ? ", ceil" : "");
    for (size_t i = 0; i < size.size(); i++)
      s += cat("; ", size[i], ": ", taps[i], " taps, stride ", strides[i], ", pad ", pad[2 * i], " ", pad[2 * i + 1]);
    return s;
  }
};

Value* pool(Graph& g, Value* x, const AverageCase& c) {
  return g.op("avg_pool", {{"x", x},
                           {"kernel_sizes", Tensor::i32(c.taps)},
                           {"strides", Tensor::i32(c.strides)},
                           {"pad_type", "custom"},
                           {"pad", Tensor::i32(c.pad)},
                           {"ceil_mode", c.ceil},
                           {"exclude_padding_from_average", c.exclude}});
}

TEST(Average, RandomCases) {
  std::mt19937 bits(5);
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits); };
  for (int i = 0; i < 200; i++) {
    AverageCase c{draw(1, 2), draw(1, 40), {}, {}, {}, {}, i % 2 == 0, false};
    const int64_t axes = draw(1, 3);
    c.ceil = axes < 3 && i % 3 == 0;
    for (int64_t axis = 0; axis < axes; axis++) {
      c.taps.push_back(draw(1, 5));
      c.strides.push_back(draw(1, 3));
      c.size.push_back(draw(c.taps.back(), axes == 3 ? 9 : 30));
      const int64_t before = draw(0, c.taps.back() - 1);
      c.pad.insert(c.pad.end(), {before, c.ceil ? before : draw(0, c.taps.back() - 1)});
    }
    SCOPED_TRACE(c.text());
    Graph g(Opset::ios17, static_cast<unsigned>(i));
    g.threads = 1 + i % 3;
    Value* y = pool(g, g.input(shape_of(c.images, c.channels, c.size)), c);
    ASSERT_NE(y, nullptr);
    expect_same_by(kAverageKernel, g,
                   with_epilogue(g, y, sample_epilogues()[static_cast<size_t>(i) % sample_epilogues().size()], false));
  }
}

/// The windows with specialized code, and numbers that are not finite.
TEST(Average, EveryWidth) {
  for (const auto& [taps, stride] : {std::pair<int64_t, int64_t>{3, 1}, {2, 2}, {3, 2}, {7, 7}})
    for (int64_t width = taps; width <= 24; width++)
      for (float odd : {1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
        SCOPED_TRACE(cat(taps, " taps, stride ", stride, ", ", width, " pixels, ", odd));
        Graph g;
        Tensor x = g.random({1, 19, 8, width});
        x.mut<float>()[static_cast<size_t>(3 * 8 * width + width / 2)] = odd;
        expect_same_by(kAverageKernel, g,
                       pool(g, g.input_of(x), {1, 19, {8, width}, {taps, taps}, {stride, stride}, {1, 1, 1, 1}, true}));
      }
}

}  // namespace
}  // namespace moka::devices_test
