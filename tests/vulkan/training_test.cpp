// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

/// What only training computes.
class Training : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
INSTANTIATE_TEST_SUITE_P(Vulkan, Training, testing::Bool(),
                         [](const auto& info) { return info.param ? "float16" : "float32"; });

struct Weights {
  Shape x, dy;
  Ints kernel, strides, dilations, pad;
  int groups = 1;
};

TEST_P(Training, WeightsOfConvolutions) {
  const Weights all[] = {
      {{3, 20, 9, 11}, {3, 24, 9, 11}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},                // 1 x 1
      {{2, 5, 13, 10}, {2, 7, 7, 8}, {3, 3}, {2, 1}, {1, 1}, {1, 0}},                  // strides
      {{2, 16, 16, 17}, {2, 16, 14, 16}, {3, 2}, {1, 1}, {2, 1}, {1, 0}, 2},           // groups
      {{2, 12, 29, 31}, {2, 12, 15, 16}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 12},          // depthwise
      {{4, 3, 40}, {4, 9, 11}, {5}, {3}, {2}, {0}},                                    // one dimension
      {{1, 4, 5, 6, 7}, {1, 8, 4, 3, 7}, {2, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}},  // three
      {{1, 1, 60, 60}, {1, 1, 60, 60}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},                // one weight
      {{2, 3, 4, 4}, {2, 2, 9, 9}, {2, 2}, {3, 3}, {1, 1}, {12, -1}},                  // windows outside of x
  };
  for (const Weights& w : all) {
    Region g(GetParam());
    Value* y = g.op("moka_conv_weights_gradient", {{"x", g.input(w.x)},
                                                   {"dy", g.input(w.dy)},
                                                   {"kernel", w.kernel},
                                                   {"strides", w.strides},
                                                   {"dilations", w.dilations},
                                                   {"pad", w.pad},
                                                   {"groups", w.groups}});
    ASSERT_NE(y, nullptr);
    const auto r = g.expect_same({y});
    EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.conv_weights_gradient"});
  }
}

TEST_P(Training, FlippedWeightsOfConvolutions) {
  const std::pair<Shape, int> all[] = {{{24, 20, 3, 3}, 1}, {{24, 5, 3, 2}, 4}, {{12, 1, 2, 3, 4}, 12}, {{9, 7, 1}, 1}};
  for (const auto& [shape, groups] : all) {
    Region g(GetParam());
    const auto r = g.expect_same({g.op("moka_flip_weights", {{"weight", g.input(shape)}, {"groups", groups}})}, 0);
    EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.flip_weights"});
  }
}

TEST_P(Training, ReductionsOfBatchNorms) {
  for (const Shape& x : {Shape{4, 70, 9, 11}, Shape{300, 7}, Shape{2, 3, 50, 60}, Shape{5, 1, 3, 2, 4}}) {
    const Shape channels{x[1]};
    Region g(GetParam());
    Value *in = g.input(x, 1, 3), *dy = g.input(x), *gamma = g.input(channels), *mean = g.input(channels, 1.5, 2.5),
          *variance = g.input(channels, 0.2f, 1);
    std::vector<Value*> all = g.ops("moka_batch_norm_training", {{"x", in}, {"gamma", gamma}, {"beta", mean}});
    for (const char* op : {"moka_batch_norm_gradient", "moka_batch_norm_training_gradient"}) {
      const std::vector<NamedArg> args{{"x", in}, {"dy", dy}, {"mean", mean}, {"variance", variance}};
      auto scaled = args;
      scaled.push_back({"gamma", gamma});
      for (Value* v : g.ops(op, args)) all.push_back(v);
      for (Value* v : g.ops(op, scaled)) all.push_back(v);
    }
    const auto r = g.expect_same(all);
    EXPECT_EQ(r.kernels.size(), 5u);
  }
}

TEST_P(Training, PoolsWithTiesAndWindowsThatOverlap) {
  struct Pool {
    Shape x, dy;
    Ints kernel, strides;
  };
  const Pool all[] = {{{2, 3, 11}, {2, 3, 9}, {3}, {1}},
                      {{1, 5, 9, 12}, {1, 5, 4, 6}, {3, 2}, {2, 2}},
                      {{1, 5, 9, 12}, {1, 5, 3, 4}, {2, 1}, {3, 3}},
                      {{1, 2, 5, 6, 7}, {1, 2, 4, 2, 3}, {2, 3, 3}, {1, 2, 2}},
                      {{2, 7, 9, 9}, {2, 7, 1, 1}, {9, 9}, {1, 1}}};
  for (const Pool& p : all) {
    for (const bool ties : {false, true}) {
      Region g(GetParam());
      Value* x = g.input(p.x, -2, 2);
      if (ties) x = g.op("round", {{"x", x}});
      const std::vector<NamedArg> args{
          {"x", x}, {"dy", g.input(p.dy)}, {"kernel_sizes", p.kernel}, {"strides", p.strides}, {"pad_type", "valid"}};
      auto inside = args;
      inside.push_back({"exclude_padding_from_average", true});
      g.expect_same({g.op("moka_max_pool_gradient", args), g.op("moka_avg_pool_gradient", args),
                     g.op("moka_avg_pool_gradient", inside)});
    }
  }
}

TEST(Steps, WriteOverTheWeightsThatTheyRenew) {
  MOKA_NEEDS_VULKAN();
  for (const float step : {1.0f, 2.0f, 37.0f, 100000.0f}) {
    Region g;
    g.share_in_place();
    const Shape shape{7, 300};
    const auto number = [&](float v) { return g.input(Tensor::scalar(DType::fp32, v)); };
    // In memory that a step can take over, unlike that of inputs.
    const auto computed = [&] { return g.op("square", {{"x", g.input(shape)}}); };
    std::vector<Value*> all = g.ops("moka_sgd_step", {{"weight", computed()},
                                                      {"gradient", g.input(shape)},
                                                      {"velocity", computed()},
                                                      {"learning_rate", number(0.1f)},
                                                      {"momentum", number(0.9f)}});
    for (Value* v : g.ops("moka_adam_step", {{"weight", computed()},
                                             {"gradient", g.input(shape)},
                                             {"first_moment", computed()},
                                             {"second_moment", computed()},
                                             {"learning_rate", number(0.1f)},
                                             {"beta_1", number(0.9f)},
                                             {"beta_2", number(0.999f)},
                                             {"epsilon", number(1e-8f)},
                                             {"step", number(step)}}))
      all.push_back(v);
    const auto r = g.expect_same(all, 2e-6);
    EXPECT_EQ(std::count(r.kernels.begin(), r.kernels.end(), "vulkan.sgd_step"), 1);
    EXPECT_EQ(std::count(r.kernels.begin(), r.kernels.end(), "vulkan.adam_step"), 1);
  }
}

}  // namespace
}  // namespace moka::vulkan_test
