// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/product.h"
#include "devices/vulkan/pipelines.h"
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

class Convolutions : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
INSTANTIATE_TEST_SUITE_P(Vulkan, Convolutions, testing::Bool(),
                         [](const auto& info) { return info.param ? "float16" : "float32"; });

struct Shapes {
  Shape x, weight;
  Ints strides, dilations;
  const char* pad_type = "valid";
  int groups = 1;
  const char* kernel = "vulkan.conv";
};

TEST_P(Convolutions, ShapesStridesDilationsGroupsAndPadding) {
  const Shapes all[] = {
      {{1, 20, 9, 11}, {24, 20, 1, 1}, {1, 1}, {1, 1}},                                  // 1 x 1
      {{2, 5, 13, 10}, {70, 5, 3, 3}, {2, 1}, {1, 2}, "same"},                           // more than a tile of channels
      {{2, 16, 6, 7}, {16, 8, 3, 2}, {1, 1}, {1, 1}, "same_lower", 2},                   // groups
      {{1, 3, 40}, {9, 3, 5}, {3}, {2}, "same"},                                         // one dimension
      {{1, 4, 5, 6, 7}, {8, 4, 2, 3, 3}, {1, 2, 1}, {2, 1, 1}, "valid"},                 // three
      {{2, 6, 14, 63}, {24, 3, 5, 6}, {5, 7}, {1, 1}, "same", 2},                        // windows apart
      {{1, 2, 8, 16, 30}, {8, 2, 2, 4, 8}, {2, 4, 8}, {1, 1, 1}, "same"},                // side by side
      {{2, 12, 9, 9}, {12, 1, 3, 3}, {2, 2}, {1, 1}, "same", 12, "vulkan.conv.direct"},  // depthwise
      {{1, 6, 4, 4, 5}, {12, 1, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, "same", 6, "vulkan.conv.direct"},
      {{1, 19, 8, 8}, {2, 19, 3, 3}, {1, 1}, {1, 1}, "same", 1, "vulkan.conv.direct"},  // few channels
      {{3, 10, 1, 1}, {40, 10, 1, 1}, {1, 1}, {1, 1}, "valid", 1, "vulkan.conv.whole"},
      {{5, 3, 4, 5}, {9, 3, 4, 5}, {1, 1}, {1, 1}, "valid", 1, "vulkan.conv.whole"},
  };
  bool bias = false;
  for (const Shapes& s : all) {
    Region g(GetParam());
    std::vector<NamedArg> args = {{"x", g.input(s.x)},      {"weight", g.constant(g.random(s.weight))},
                                  {"strides", s.strides},   {"dilations", s.dilations},
                                  {"pad_type", s.pad_type}, {"groups", s.groups}};
    if (bias) args.push_back({"bias", g.constant(g.random({s.weight[0]}))});
    bias = !bias;
    Value* y = g.op("conv", std::move(args));
    ASSERT_NE(y, nullptr);
    y->producer()->epilogue = {{"leaky_relu", 0.1f}, {"tanh"}};
    const auto r = g.expect_same({y});
    ASSERT_EQ(r.kernels.size(), 1u);
    EXPECT_EQ(r.kernels[0], s.kernel);
    if (!GetParam()) {
      EXPECT_EQ(r.counters.dispatches, 1u);  // values of float16 are converted
    }
  }
}

TEST_P(Convolutions, OfOtherHeightsAndChannelsShareAShader) {
  MOKA_NEEDS_BLOCKS();
  const devices::vulkan::Pipelines& pipelines = (*devices::vulkan::Context::get())->pipelines();
  size_t before = 0;
  for (int64_t height : {1, 3, 5}) {
    Region g(GetParam());
    g.expect_same({g.op("conv", {{"x", g.input({1, 4 + height, 9, 16})},
                                 {"weight", g.constant(g.random({16 * height, 4 + height, height, 3}))},
                                 {"strides", Ints{1, 1}},
                                 {"dilations", Ints{1, 1}},
                                 {"pad_type", "same"}})});
    if (before != 0) {
      EXPECT_EQ(pipelines.count(), before) << height;
    }
    before = pipelines.count();
  }
}

TEST_P(Convolutions, PaddingOfItsOwnAndWeightsThatAreComputed) {
  Region g(GetParam());
  Value* y = g.op("conv", {{"x", g.input({1, 4, 6, 5})},
                           {"weight", g.input({8, 4, 3, 3})},
                           {"pad_type", "custom"},
                           {"pad", Ints{2, 0, 1, 3}},
                           {"strides", Ints{1, 1}},
                           {"dilations", Ints{1, 1}}});
  const auto r = g.expect_same({y});
  EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.conv.direct"});
}

TEST_P(Convolutions, WeightsThatAreReadAsTheyAreStored) {
  for (DType dtype : {DType::int8, DType::uint8, DType::int4}) {
    Region g(GetParam());
    kernel::StoredConstant stored;
    stored.elements = codes(dtype, {22, 5, 3, 3});
    stored.scale = g.random({22, 1, 1, 1}, 0.01f, 0.02f);
    if (dtype == DType::uint8) stored.offset = g.random({22, 1, 1, 1}, 100, 120);
    Value* y = g.op("conv", {{"x", g.input({2, 10, 6, 7})},
                             {"weight", g.stored(stored)},
                             {"strides", Ints{1, 1}},
                             {"dilations", Ints{1, 1}},
                             {"pad_type", "same"},
                             {"groups", 2}});
    const auto r = g.expect_same({y});
    EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.conv"});
  }
}

TEST_P(Convolutions, LargeOnesOfThreeByThree) {
  bool all = false;
  for (const char* pad : {"same", "valid"}) {
    Region g(GetParam());
    std::vector<NamedArg> args = {{"x", g.input({1, 322, 19, 22})},
                                  {"weight", g.constant(g.random({318, 322, 3, 3}))},
                                  {"strides", Ints{1, 1}},
                                  {"dilations", Ints{1, 1}},
                                  {"pad_type", pad}};
    const Shape made = all ? Shape{1, 318, 17, 20} : Shape{1, 318, 19, 22};
    if (all) args.push_back({"bias", g.constant(g.random({318}))});
    if (all) args.push_back({"addend", g.input(made)});
    all = true;
    Value* y = g.op("conv", std::move(args));
    ASSERT_NE(y, nullptr);
    y->producer()->epilogue = {{"relu"}};
    const auto r = g.expect_same({y});
    // These are few workgroups for a large GPU, where several divide the sums of each tile.
    const bool is_large = card().is_large, tiles = card().shares_tiles();
    EXPECT_EQ(r.kernels, std::vector<std::string>{tiles && !is_large ? "vulkan.conv.winograd" : "vulkan.conv"});
    if (!GetParam()) {
      EXPECT_EQ(r.counters.dispatches, tiles && is_large ? 2u : 1u);
    }
  }
}

TEST_P(Convolutions, WholeOnesReadStoredWeights) {
  for (bool palette : {false, true}) {
    Region g(GetParam());
    kernel::StoredConstant stored;
    stored.elements = codes(palette ? DType::uint4 : DType::int4, {20, 8, 2, 3});
    if (palette) stored.table = g.random({10, 1, 1, 1, 16});
    if (!palette) stored.scale = g.random({20, 2, 1, 1}, 0.01f, 0.02f);
    Value* y = g.op("conv", {{"x", g.input({2, 8, 2, 3})},
                             {"weight", g.stored(stored)},
                             {"strides", Ints{1, 1}},
                             {"dilations", Ints{1, 1}},
                             {"pad_type", "valid"}});
    const auto r = g.expect_same({y});
    EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.conv.whole.packed"});
  }
}

TEST_P(Convolutions, TransposedOnes) {
  struct {
    Shape x, weight;
    Ints strides, dilations, pad;
    int groups = 1;
    Ints size;
    const char* kernel = "vulkan.conv_transpose";
  } const all[] = {
      {{2, 5, 6, 7}, {5, 8, 3, 3}, {2, 2}, {1, 1}, {1, 0, 0, 1}},
      {{1, 6, 5}, {6, 12, 4}, {2}, {1}, {1, 1}, 2},
      {{1, 4, 3, 4, 3}, {4, 9, 2, 3, 2}, {2, 1, 3}, {1, 1, 1}, {0, 0, 1, 1, 0, 0}},
      {{1, 3, 5, 5}, {3, 70, 2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 1, {1, 70, 11, 10}},
      {{1, 3, 4, 5}, {3, 8, 3, 2}, {2, 3}, {2, 1}, {0, 0, 0, 0}, 1, {}, "vulkan.conv_transpose.direct"},
      {{2, 6, 5, 4}, {6, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 6, {}, "vulkan.conv_transpose.direct"},
  };
  bool bias = false;
  for (const auto& s : all) {
    Region g(GetParam());
    std::vector<NamedArg> args = {{"x", g.input(s.x)},    {"weight", g.constant(g.random(s.weight))},
                                  {"strides", s.strides}, {"dilations", s.dilations},
                                  {"pad_type", "custom"}, {"pad", s.pad},
                                  {"groups", s.groups}};
    if (bias) args.push_back({"bias", g.constant(g.random({s.weight[1] * s.groups}))});
    if (s.size.size() > 0) args.push_back({"output_shape", s.size});
    bias = !bias;
    Value* y = g.op("conv_transpose", std::move(args));
    ASSERT_NE(y, nullptr);
    y->producer()->epilogue = {{"relu"}};
    const auto r = g.expect_same({y});
    EXPECT_EQ(r.kernels, std::vector<std::string>{s.kernel});
  }
}

TEST_P(Convolutions, AddATensorBeforeTheirEpilogues) {
  for (const Shape& weight : {Shape{16, 8, 3, 3}, Shape{8, 1, 3, 3}}) {
    Region g(GetParam());
    Value* x = g.input({1, 8, 10, 6});
    Value* y = g.op("conv", {{"x", x},
                             {"weight", g.constant(g.random(weight))},
                             {"pad_type", "same"},
                             {"groups", static_cast<int>(8 / weight[1])},
                             {"strides", Ints{1, 1}},
                             {"dilations", Ints{1, 1}},
                             {"addend", g.input({1, weight[0], 10, 6})}});
    ASSERT_NE(y, nullptr);
    y->producer()->epilogue = {{"relu"}};
    g.expect_same({y});
  }
}

struct Separable {
  Shape x, depthwise;
  Ints strides, dilations;
  const char* pad_type;
  int64_t made;
  bool bias, addend;
};

/// A depthwise convolution with its functions, and a convolution of 1 x 1 behind it.
Value* separable(Region& g, const Separable& s, Value** between = nullptr) {
  const int channels = static_cast<int>(s.x[1]);
  std::vector<NamedArg> args = {{"x", g.input(s.x)},      {"weight", g.constant(g.random(s.depthwise))},
                                {"strides", s.strides},   {"dilations", s.dilations},
                                {"pad_type", s.pad_type}, {"groups", channels}};
  if (s.bias) args.push_back({"bias", g.constant(g.random({channels}))});
  Value* d = g.op("conv", std::move(args));
  if (d == nullptr) return nullptr;
  d->producer()->epilogue = {{"relu6"}};
  args = {{"x", d},
          {"weight", g.constant(g.random({s.made, channels, 1, 1}))},
          {"strides", Ints{1, 1}},
          {"dilations", Ints{1, 1}},
          {"pad_type", "valid"}};
  if (!s.bias) args.push_back({"bias", g.constant(g.random({s.made}))});
  if (s.addend) {
    Shape made = d->type.shape();
    made[1] = s.made;
    args.push_back({"addend", g.input(made)});
  }
  Value* y = g.op("conv", std::move(args));
  if (y == nullptr) return nullptr;
  y->producer()->epilogue = {{"leaky_relu", 0.1f}, {"tanh"}};
  if (between != nullptr) *between = d;
  return y;
}

/// Runs it twice, the second time with the depthwise convolution as an output, and returns how many dispatches the
/// first one saved beside the output's own. Both give the same answer, which for float32 is the reference's.
size_t saved_dispatches(bool half, const Separable& s) {
  Region alone(half), both(half);
  Value *y = separable(alone, s), *between = nullptr;
  Value* z = separable(both, s, &between);
  if (y == nullptr || between == nullptr) return 0;
  // The intermediate value is rounded to float16, which the reference does not do.
  const auto a = half ? alone.run({y}) : alone.expect_same({y});
  const auto b = half ? both.run({z, between}) : both.expect_same({z, between});
  EXPECT_EQ(a.kernels, (std::vector<std::string>{"vulkan.conv.direct", "vulkan.conv"}));
  if (a.got.empty() || b.got.empty()) return 0;
  // A driver may add in another order, so a value between, at most 6, may round to a neighbor in float16. The weight
  // that multiplies it is at most 1, and the result, at most 1, is rounded too.
  const double allowed = half ? 0x1p-8 + 0x1p-10 : 1e-5;
  for (int64_t i = 0; i < a.got[0].count(); i++)
    EXPECT_NEAR(load_f64(a.got[0].view(), i), load_f64(b.got[0].view(), i), allowed) << i;
  // Outputs of float16 are converted.
  return b.counters.dispatches - a.counters.dispatches - (half ? 1 : 0);
}

TEST(Tiles, AreSmallWhereLargeOnesComputeManyRowsThatNobodyReads) {
  const std::pair<int64_t, uint32_t> sizes[] = {{16, 32}, {24, 32}, {32, 32},  {33, 64},
                                                {64, 64}, {96, 32}, {128, 64}, {160, 64}};
  for (const auto& [rows, size] : sizes) {
    const devices::gpu::Tiles tiles = devices::gpu::tiles_of(card(), rows, 112 * 112, 1, 64);
    EXPECT_EQ(tiles.size, size) << rows;
    EXPECT_EQ(tiles.groups[1], (rows + size - 1) / size) << rows;
  }
  EXPECT_EQ(devices::gpu::tiles_of(card(), 64, 64, 1, 64).size, 32u) << "few groups";
  EXPECT_EQ(devices::gpu::large_tiles_of(card(), 96, 112 * 112, 1, 64).size, 64u);
}

TEST(Tiles, AreSlicedWhereFewGroupsHaveMuchToAdd) {
  MOKA_NEEDS_VULKAN();
  const std::tuple<int64_t, int64_t, uint32_t> slices[] = {{64, 64, 1},  {64, 127, 1},  {64, 128, 2},
                                                           {64, 256, 4}, {64, 4096, 4}, {32 * 1024, 4096, 1}};
  for (const auto& [rows, depth, expected] : slices)
    EXPECT_EQ(devices::gpu::tiles_of(card(), rows, 32, 1, depth).slices, expected) << rows << " rows, depth " << depth;
}

TEST_P(Convolutions, DepthwiseOnesAreComputedWhereConvolutionsOfOneByOneReadThem) {
  if (card().is_large) GTEST_SKIP() << "a large GPU joins larger ones only";
  const Separable all[] = {
      {{2, 18, 9, 11}, {18, 1, 3, 3}, {1, 1}, {1, 1}, "same", 24, true, false},
      {{1, 33, 14, 13}, {33, 1, 3, 3}, {2, 2}, {1, 1}, "same", 60, false, true},  // more than a tile of channels
      {{1, 20, 12, 10}, {20, 1, 5, 3}, {1, 2}, {2, 1}, "valid", 9, true, true},
      {{1, 8, 100, 90}, {8, 1, 3, 3}, {1, 1}, {1, 1}, "same_lower", 40, true, false},  // large tiles
      {{1, 8, 100, 90}, {8, 1, 3, 3}, {1, 1}, {1, 1}, "same_lower", 96, true, false},  // small ones would be three
      {{1, 24, 7, 7}, {24, 1, 5, 5}, {1, 1}, {1, 1}, "same", 60, true, true},
      {{1, 48, 120, 112}, {48, 1, 3, 3}, {2, 2}, {1, 1}, "same", 24, true, false},  // much between both
  };
  for (const Separable& s : all) {
    const bool joins = card().shares_tiles() || s.strides[1] == 1 || s.x.count() > 600'000;
    EXPECT_EQ(saved_dispatches(GetParam(), s), joins ? 1u : 0u) << s.made;
  }
}

TEST_P(Convolutions, DepthwiseOnesAreWrittenWhereManyWouldComputeThem) {
  // Blocks of a workgroup are for up to 1024 channels, tiles for 128.
  const int64_t made = card().shares_tiles() ? 200 : 1100;
  EXPECT_EQ(saved_dispatches(GetParam(), {{1, 18, 9, 11}, {18, 1, 3, 3}, {1, 1}, {1, 1}, "same", made, true, false}),
            0u);
}

Ints repeated(int64_t v, int n) {
  Ints all;
  for (int i = 0; i < n; i++) all.push_back(v);
  return all;
}

TEST_P(Convolutions, PoolsOfAllKinds) {
  const std::pair<Shape, Ints> shapes[] = {
      {{2, 3, 11}, {3}}, {{1, 5, 9, 12}, {3, 2}}, {{1, 2, 5, 6, 7}, {2, 3, 3}}, {{2, 7, 9, 9}, {9, 9}}};
  for (const auto& [x, kernel] : shapes) {
    for (const char* op : {"max_pool", "avg_pool", "l2_pool"}) {
      if (kernel.size() == 3 && std::string_view(op) == "l2_pool") continue;
      for (const char* pad : {"valid", "same", "same_lower", "custom"}) {
        Region g(GetParam());
        std::vector<NamedArg> args = {{"x", g.input(x, -2, 2)},
                                      {"kernel_sizes", kernel},
                                      {"strides", repeated(2, kernel.size())},
                                      {"pad_type", pad}};
        const bool own = std::string_view(pad) == "custom";
        if (own) args.push_back({"pad", repeated(1, 2 * kernel.size())});
        if (own && kernel.size() < 3) args.push_back({"ceil_mode", true});
        std::vector<Value*> all = {g.op(op, args)};
        if (std::string_view(op) == "avg_pool") {
          args.push_back({"exclude_padding_from_average", true});
          all.push_back(g.op(op, args));
        }
        g.expect_same(all);
      }
    }
  }
}

}  // namespace
}  // namespace moka::vulkan_test
