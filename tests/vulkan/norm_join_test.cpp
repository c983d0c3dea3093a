// SPDX-License-Identifier: Apache-2.0
#include "vulkan/region_util.h"

/// Batch norms that the dispatch before them applies.
namespace moka::vulkan_test {
namespace {

using namespace ir;

/// A batch norm of x along dimension 1. Some factors are negative.
Value* norm(Region& g, Value* x, int64_t channels, bool has_gamma = true) {
  std::vector<NamedArg> args{{"x", x},
                             {"mean", g.constant(g.random({channels}))},
                             {"variance", g.constant(g.random({channels}, 0.5f, 2))},
                             {"epsilon", 1e-3f}};
  if (has_gamma) args.push_back({"gamma", g.constant(g.random({channels}))});
  if (has_gamma) args.push_back({"beta", g.constant(g.random({channels}))});
  return g.op("batch_norm", std::move(args));
}

struct Layer {
  const char* type = "conv";
  Shape x, weight;
  Ints strides{1, 1};
  const char* pad_type = "same";
  int groups = 1;
  bool bias = true;
};

Value* made(Region& g, const Layer& l, Value* x = nullptr) {
  const bool transposed = std::string_view(l.type) == "conv_transpose";
  Ints dilations;
  for (int i = 0; i < l.strides.size(); i++) dilations.push_back(1);
  std::vector<NamedArg> args{{"x", x != nullptr ? x : g.input(l.x)},
                             {"weight", g.constant(g.random(l.weight))},
                             {"strides", l.strides},
                             {"dilations", dilations},
                             {"pad_type", l.pad_type},
                             {"groups", l.groups}};
  if (l.bias)
    args.push_back({"bias", g.constant(g.random({l.weight[transposed ? 1 : 0] * (transposed ? l.groups : 1)}))});
  Value* y = g.op(l.type, std::move(args));
  y->producer()->epilogue = {{"relu"}};
  return y;
}

int64_t channels_of(const Value& v) { return v.type.shape()[1]; }

TEST(ConvolutionsWithNorms, AreOneDispatch) {
  MOKA_NEEDS_VULKAN();
  const Layer all[] = {
      {"conv", {2, 20, 9, 11}, {24, 20, 1, 1}},
      {"conv", {1, 5, 13, 10}, {70, 5, 3, 3}, {2, 1}},
      {"conv", {2, 16, 6, 7}, {16, 8, 3, 2}, {1, 1}, "same", 2, false},
      {"conv", {2, 12, 9, 9}, {12, 1, 3, 3}, {2, 2}, "same", 12},        // depthwise
      {"conv", {1, 19, 8, 8}, {2, 19, 3, 3}, {1, 1}, "same", 1, false},  // few channels
      {"conv", {1, 3, 40}, {9, 3, 5}, {3}},
      {"conv", {1, 64, 58, 58}, {64, 64, 3, 3}},  // Winograd in tiles
      {"conv_transpose", {1, 6, 5, 7}, {6, 10, 4, 4}, {2, 2}, "valid"},
      {"conv_transpose", {2, 8, 5, 5}, {8, 8, 2, 2}, {2, 2}, "valid", 2, false},
  };
  for (const bool in_place : {false, true})
    for (const Layer& l : all) {
      Region g;
      if (in_place) g.share_in_place();
      Value* y = made(g, l);
      const auto r = g.expect_same({norm(g, y, channels_of(*y), l.bias)});
      EXPECT_EQ(r.counters.dispatches, 1u) << l.type << " of " << cat(l.weight) << " by " << r.kernels[0];
    }
}

// A large GPU divides the sums of a product of few tiles, and adds the parts in a second dispatch.
TEST(ConvolutionsWithNorms, InPartsAreTwo) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* y = made(g, {"conv", {1, 2048, 7, 7}, {64, 2048, 1, 1}});
  const auto r = g.expect_same({norm(g, y, 64)});
  EXPECT_EQ(r.counters.dispatches, card().shares_tiles() && card().is_large ? 2u : 1u);
}

TEST(ConvolutionsWithNorms, AnAddendComesFirst) {
  MOKA_NEEDS_VULKAN();
  Region g;
  g.share_in_place();
  Value* y = made(g, {"conv", {1, 16, 8, 8}, {24, 16, 1, 1}});
  y->producer()->set_input("addend", {g.input({1, 24, 8, 8})});
  const auto r = g.expect_same({norm(g, y, 24)});
  EXPECT_EQ(r.counters.dispatches, 1u);
}

TEST(ConvolutionsWithNorms, StillAbsorbADepthwiseOne) {
  MOKA_NEEDS_VULKAN();
  if (card().is_large) GTEST_SKIP() << "a large GPU joins larger ones only";
  Region g;
  Value* d = made(g, {"conv", {2, 16, 9, 8}, {16, 1, 3, 3}, {1, 1}, "same", 16});
  Value* y = made(g, {"conv", {}, {24, 16, 1, 1}, {1, 1}, "valid"}, d);
  const auto r = g.expect_same({norm(g, y, 24)});
  EXPECT_EQ(r.counters.dispatches, 1u);
}

TEST(ConvolutionsWithNorms, OfWhatOthersReadAreTwo) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* y = made(g, {"conv", {1, 16, 8, 8}, {24, 16, 1, 1}});
  const auto r = g.expect_same({y, norm(g, y, 24)});
  EXPECT_EQ(r.counters.dispatches, 2u);
}

TEST(ConvolutionsWithNorms, OfOtherChannelsAreTwo) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* y = made(g, {"conv", {1, 16, 4, 6}, {24, 16, 1, 1}});
  Value* turned = g.op("reshape", {{"x", y}, {"shape", Tensor::i32({1, 96, 6})}});
  const auto r = g.expect_same({norm(g, turned, 96)});
  EXPECT_EQ(r.counters.dispatches, 2u);
}

TEST(ConvolutionsWithNorms, OfBytesAreTwo) {
  MOKA_NEEDS_VULKAN();
  kernel::StoredConstant s;
  s.elements = *Tensor::zeros(DType::int8, {24, 16, 1, 1});
  for (int64_t i = 0; i < s.elements.count(); i++) store_i64(s.elements.view(), i, i * 7 % 200 - 100);
  s.scale = Tensor::f32({1, 1, 1, 1}, std::vector{0.02f});
  Region g;
  Value* y = g.op("conv", {{"x", g.input({1, 16, 8, 8})}, {"weight", g.stored(s)}, {"pad_type", "valid"}});
  const auto r = g.expect_same({norm(g, y, 24)});
  EXPECT_EQ(r.counters.dispatches, 2u);
}

TEST(ConvolutionsWithNorms, ANormJoinsElementwiseOperationsToo) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.op("add", {{"x", g.input({2, 6, 4, 5})}, {"y", g.input({2, 6, 4, 5})}});
  Value* y = norm(g, x, 6);
  y->producer()->epilogue = {{"relu"}};
  const auto r = g.expect_same({g.op("mul", {{"x", y}, {"y", g.input({2, 6, 4, 5})}})});
  EXPECT_EQ(r.counters.dispatches, 1u);
}

TEST(ConvolutionsWithNorms, WithTheSameMeanAreDifferent) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* mean = g.constant(g.random({24}));
  std::vector<Value*> outputs;
  for (float variance : {0.5f, 2.0f})
    outputs.push_back(g.op("batch_norm", {{"x", made(g, {"conv", {1, 16, 8, 8}, {24, 16, 1, 1}})},
                                          {"mean", mean},
                                          {"variance", g.constant(Tensor::f32({24}, std::vector(24, variance)))},
                                          {"epsilon", 1e-3f}}));
  const auto r = g.expect_same(outputs);
  EXPECT_EQ(r.counters.dispatches, 2u);
}

}  // namespace
}  // namespace moka::vulkan_test
