// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/chain.h"
#include "devices/gpu/common/common.h"
#include "devices/vulkan/pipelines.h"
#include "vulkan/region_util.h"

// Dispatches whose pipelines are the same. The sizes occur in no other test, so that a region makes all of its
// pipelines.
namespace moka::vulkan_test {
namespace {

using namespace ir;

class Sharing : public testing::Test {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }

  static size_t pipelines() { return (*devices::vulkan::Context::get())->pipelines().count(); }
  /// The number of new pipelines that a region with these results creates.
  static size_t made_for(Region& g, const std::vector<Value*>& outputs) {
    const size_t before = pipelines();
    g.expect_same(outputs);
    return pipelines() - before;
  }
  static Value* with(Value* y, std::vector<Epilogue> functions) {
    y->producer()->epilogue = std::move(functions);
    return y;
  }
};

const std::vector<std::vector<Epilogue>> kLimits = {
    {}, {{"relu"}}, {{"relu6"}}, {{"clip", -0.25f, 0.5f}}, {{"moka_hard_swish"}}};

TEST_F(Sharing, ConvolutionsWithLimitsAndWithout) {
  for (const int groups : {1, 16}) {
    Region g;
    std::vector<Value*> all;
    for (const auto& functions : kLimits)
      all.push_back(with(g.op("conv", {{"x", g.input({1, 16, 9, 31}, -4, 4)},
                                       {"weight", g.constant(g.random({16, 16 / groups, 1, 4}))},
                                       {"dilations", Ints{1, 5}},
                                       {"groups", groups},
                                       {"pad_type", "valid"}}),
                         functions));
    EXPECT_EQ(made_for(g, all), 1u) << groups;
  }
}

TEST_F(Sharing, ConvolutionsWithBiasesAndFunctionsAndWithout) {
  for (const int groups : {1, 16}) {
    Region g;
    std::vector<Value*> all;
    for (const bool has : {false, true}) {
      Value* x = g.input({1, 16, 9, 31});
      Value* weight = g.constant(g.random({16, 16 / groups, 1, 4}));
      std::vector<NamedArg> args = {
          {"x", x},           {"weight", weight},   {"strides", Ints{1, 3}}, {"dilations", Ints{1, 3}},
          {"groups", groups}, {"pad_type", "valid"}};
      if (has) args.push_back({"bias", g.constant(g.random({16}))});
      Value* y = g.op("conv", std::move(args));
      all.push_back(has ? with(y, {{"silu"}, {"tanh"}}) : y);
    }
    EXPECT_EQ(made_for(g, all), 1u) << groups;
  }
}

TEST_F(Sharing, LimitsThatCrossAreNoHardSwish) {
  Region g;
  g.expect_same({with(
      g.op("conv",
           {{"x", g.input({1, 16, 5, 5})}, {"weight", g.constant(g.random({16, 16, 1, 1}))}, {"pad_type", "valid"}}),
      {{"clip", 0.5f, 0.25f}})});
}

TEST_F(Sharing, ProductsWithAndWithoutBiasAddendAndFunctions) {
  for (const int64_t rows : {int64_t{1}, int64_t{12}}) {
    Region g;
    Value* x = g.input({rows, 24});
    Value *weight = g.constant(g.random({40, 24})), *bias = g.constant(g.random({40}));
    const std::vector<Epilogue> functions = {{"sigmoid"}, {"elu", 0.5f}};
    EXPECT_EQ(made_for(g, {g.op("linear", {{"x", x}, {"weight", weight}}),
                           with(g.op("linear", {{"x", x}, {"weight", weight}, {"bias", bias}}), functions),
                           g.op("linear", {{"x", x}, {"weight", weight}, {"addend", g.input({rows, 40})}})}),
              1u)
        << rows;
  }
}

TEST_F(Sharing, WithoutFunctionsOnlyTheFirstThatHasSomeIsTaken) {
  Region g;
  std::vector<Value*> all;
  for (const char* function : {"", "abs", "softplus", ""}) {
    Value* y = g.op("matmul", {{"x", g.input({13, 24})}, {"y", g.input({24, 40})}, {"transpose_x", false}});
    all.push_back(*function == 0 ? y : with(y, {{function}, {"elu", 0.5f}}));
  }
  EXPECT_EQ(made_for(g, all), 2u);
}

TEST_F(Sharing, DepthwiseConvolutionsOfOtherHeights) {
  MOKA_NEEDS_BLOCKS();
  Region g;
  std::vector<Value*> all;
  for (const int64_t height : {1, 2, 5})
    all.push_back(g.op("conv", {{"x", g.input({1, 16, 9, 31})},
                                {"weight", g.constant(g.random({16, 1, height, 6}))},
                                {"groups", 16},
                                {"pad_type", "same"}}));
  EXPECT_EQ(made_for(g, all), 1u);
}

TEST_F(Sharing, ConvolutionsWhoseWindowsAreApart) {
  MOKA_NEEDS_BLOCKS();
  Region g;
  std::vector<Value*> all;
  for (const int64_t width : {4, 7, 11})
    all.push_back(g.op("conv", {{"x", g.input({1, 3, 9, 121})},
                                {"weight", g.constant(g.random({16, 3, 2, width}))},
                                {"strides", Ints{2, 11}},
                                {"pad_type", "valid"}}));
  EXPECT_EQ(made_for(g, all), 1u);
}

TEST_F(Sharing, ReductionsOfOtherSizes) {
  Region g;
  std::vector<Value*> all;
  for (const int64_t n : {3, 40, 300, 5000})
    for (const int axis : {0, 1})
      all.push_back(with(g.op("reduce_l1_norm",
                              {{"x", g.input(axis == 1 ? Shape{7, n} : Shape{n, 7})}, {"axes", Tensor::i32({axis})}}),
                         {{"sqrt"}, {"tanh"}}));
  EXPECT_EQ(made_for(g, all), 1u);
}

TEST_F(Sharing, ShortProgramsHaveAShaderOfTheirOwn) {
  devices::gpu::Chain c;
  c.inputs.resize(1);
  for (size_t n = 0; n < devices::gpu::Chain::kShort; n++) c.add(F_EXP, c.last());
  EXPECT_EQ(c.shader(), "chain_short_f32");
  c.add(F_EXP, c.last());
  EXPECT_EQ(c.shader(), "chain_f32");
  for (const size_t n : {devices::gpu::Chain::kShort, devices::gpu::Chain::kShort + 1}) {
    Region g;
    Value* v = g.input({100}, 0.5f, 2);
    for (size_t i = 0; i < n; i++) v = g.op("mul", {{"x", v}, {"y", 0.75f}});
    EXPECT_EQ(g.expect_same({v}).counters.dispatches, 1u);
  }
}

}  // namespace
}  // namespace moka::vulkan_test
