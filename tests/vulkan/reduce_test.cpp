// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

class Reductions : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
INSTANTIATE_TEST_SUITE_P(Reductions, Reductions, testing::Bool(),
                         [](const auto& info) { return info.param ? "float16" : "float32"; });

constexpr const char* kAll[] = {"reduce_sum",         "reduce_mean",      "reduce_max",     "reduce_min",
                                "reduce_prod",        "reduce_l1_norm",   "reduce_l2_norm", "reduce_log_sum",
                                "reduce_log_sum_exp", "reduce_sum_square"};

TEST_P(Reductions, AlongAnyAxes) {
  const std::pair<Shape, std::vector<int64_t>> all[] = {
      {{3, 4, 5}, {2}},         {{3, 4, 5}, {0}},       {{3, 4, 5}, {0, 2}},          {{2, 600}, {1}},
      {{600, 2}, {0}},          {{2, 3, 4, 5}, {1, 3}}, {{2, 3, 2, 3, 2}, {0, 2, 4}}, {{5, 3000}, {0, 1}},
      {{1, 8, 20, 20}, {2, 3}}, {{300, 9}, {1}},
  };
  for (const auto& [shape, axes] : all) {
    Region g(GetParam());
    // Products of many numbers stay near one.
    Value* x = g.input(shape, 0.99f, 1.01f);
    std::vector<Value*> out;
    for (const char* op : kAll) out.push_back(g.op(op, {{"x", x}, {"axes", Tensor::i32(axes)}, {"keep_dims", true}}));
    g.expect_same(out);
  }
}

TEST_P(Reductions, PlacesOfExtremes) {
  for (const auto& [shape, axis] :
       std::vector<std::pair<Shape, int>>{{{3, 4, 5}, 1}, {{4, 900}, 1}, {{900, 4}, 0}, {{2, 3, 4, 5}, -1}}) {
    Region g(GetParam());
    Value* x = g.input(shape);
    std::vector<float> few(static_cast<size_t>(shape.count()));
    for (size_t i = 0; i < few.size(); i++) few[i] = static_cast<float>(i * 7 % 5);
    Value* equal = g.input(Tensor::f32(shape, few));
    few[few.size() / 2] = NAN;
    Value* none = g.input(Tensor::f32(shape, few));
    std::vector<Value*> out;
    for (Value* v : {x, equal, none})
      for (const char* op : {"reduce_argmax", "reduce_argmin"}) out.push_back(g.op(op, {{"x", v}, {"axis", axis}}));
    g.expect_same(out);
  }
}

TEST_P(Reductions, ValuesThatAreNoNumbers) {
  const float inf = INFINITY;
  Region g(GetParam());
  std::vector<Value*> out;
  for (const std::vector<float>& v : {std::vector<float>{1, inf, 2}, {1, -inf, 2}, {-inf, -inf, -inf}, {1, NAN, inf}}) {
    Value* x = g.input(Tensor::f32({3}, v));
    for (const char* op : {"reduce_max", "reduce_min", "reduce_log_sum_exp", "reduce_sum"})
      out.push_back(g.op(op, {{"x", x}, {"axes", Tensor::i32({0})}}));
    out.push_back(g.op("softmax", {{"x", x}}));
  }
  g.expect_same(out);
}

TEST(ReductionsOfIntegers, WrapAndRefuseMeans) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input(Tensor::i32({2147483647, 5, -3, -2147483648LL, 9, 100000}));
  std::vector<Value*> out;
  for (const char* op : {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_l1_norm", "reduce_sum_square",
                         "reduce_argmax", "reduce_argmin"})
    out.push_back(g.op(op, {{"x", x}}));
  g.expect_same(out);
  Region h;
  const auto refused = h.run({h.op("reduce_mean", {{"x", h.input(Tensor::i32({1, 2}))}})});
  EXPECT_NE(refused.refusal.find("integers"), std::string::npos) << refused.refusal;
}

TEST_P(Reductions, Softmax) {
  Region g(GetParam());
  std::vector<Value*> out;
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int>>{
           {{3, 7}, 1}, {{2, 1000}, -1}, {{2, 50, 33}, 1}, {{4, 3, 5}, 0}, {{1, 2, 197, 197}, 3}})
    out.push_back(g.op("softmax", {{"x", g.input(shape, -20, 20)}, {"axis", axis}}));
  g.expect_same(out);
}

TEST_P(Reductions, Norms) {
  Region g(GetParam());
  Value *x = g.input({2, 6, 5, 7}, 40, 44), *row = g.input({3, 11, 300});
  const auto weights = [&](const Shape& s) { return g.constant(g.random(s, 0.5f, 2)); };
  std::vector<Value*> out;
  out.push_back(g.op("layer_norm",
                     {{"x", row}, {"axes", Tensor::i32({2})}, {"gamma", weights({300})}, {"beta", weights({300})}}));
  out.push_back(g.op("layer_norm", {{"x", row}, {"axes", Tensor::i32({0, 2})}, {"gamma", weights({3, 300})}}));
  out.push_back(g.op("layer_norm", {{"x", row}, {"axes", Tensor::i32({1})}, {"epsilon", 0.01f}}));
  out.push_back(g.op("instance_norm", {{"x", x}, {"gamma", weights({6})}, {"beta", weights({6})}}));
  out.push_back(g.op("instance_norm", {{"x", x}}));
  for (int groups : {1, 2, 3, 6})
    out.push_back(
        g.op("moka_group_norm", {{"x", x}, {"groups", groups}, {"gamma", weights({6})}, {"beta", weights({6})}}));
  out.push_back(g.op("l2_norm", {{"x", x}}));
  out.push_back(g.op(
      "batch_norm",
      {{"x", x}, {"mean", weights({6})}, {"variance", weights({6})}, {"gamma", weights({6})}, {"beta", weights({6})}}));
  out.push_back(g.op("batch_norm", {{"x", x}, {"mean", weights({6})}, {"variance", weights({6})}}));
  out.push_back(
      g.op("softplus_parametric", {{"x", g.input({2, 6, 5})}, {"alpha", weights({6})}, {"beta", weights({6})}}));
  for (int size : {1, 2, 3, 5, 20})
    out.push_back(g.op("local_response_norm", {{"x", x}, {"size", size}, {"alpha", 0.1f}}));
  g.expect_same(out);
}

TEST_P(Reductions, ApplyEpiloguesThemselves) {
  Region g(GetParam());
  Value* x = g.input({4, 40}, -1, 1);
  std::vector<Value*> out{g.op("layer_norm", {{"x", x}, {"axes", Tensor::i32({1})}}), g.op("softmax", {{"x", x}}),
                          g.op("reduce_sum", {{"x", x}, {"axes", Tensor::i32({1})}})};
  for (Value* v : out) v->producer()->epilogue = {{"relu"}, {"square"}};
  const auto r = g.expect_same(out);
  // Float16 is converted besides.
  if (!GetParam()) {
    EXPECT_EQ(r.counters.dispatches, 3u);
  }
}

TEST_P(Reductions, Resizing) {
  Region g(GetParam());
  Value* x = g.input({2, 3, 5, 7});
  std::vector<Value*> out;
  for (const char* mode : {"DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"})
    for (const auto& [h, w] : {std::pair(9, 14), std::pair(1, 1), std::pair(3, 20)}) {
      out.push_back(g.op("resize_bilinear",
                         {{"x", x}, {"target_size_height", h}, {"target_size_width", w}, {"sampling_mode", mode}}));
      for (const char* how : {"LINEAR", "NEAREST_NEIGHBOR"})
        out.push_back(g.op("resize", {{"x", x},
                                      {"shape", Tensor::i32({h, w})},
                                      {"resized_dims", Tensor::scalar_i64(DType::uint32, 2)},
                                      {"interpolation_mode", how},
                                      {"sampling_mode", mode}}));
    }
  out.push_back(g.op("resize_nearest_neighbor", {{"x", x}, {"target_size_height", 11}, {"target_size_width", 3}}));
  out.push_back(g.op("upsample_nearest_neighbor", {{"x", x}, {"scale_factor_height", 2}, {"scale_factor_width", 3}}));
  for (bool corners : {false, true})
    out.push_back(g.op("upsample_bilinear",
                       {{"x", x}, {"scale_factor_height", 2}, {"scale_factor_width", 3}, {"align_corners", corners}}));
  g.expect_same(out);
}

/// Infinities with weight 0 do not affect a pixel.
TEST_P(Reductions, ResizingInfinities) {
  Region g(GetParam());
  const float inf = INFINITY;
  Value* x = g.input(Tensor::f32({1, 1, 2, 3}, std::vector<float>{1, inf, 3, -inf, 5, -inf}));
  g.expect_same({g.op("upsample_bilinear", {{"x", x}, {"align_corners", true}}),
                 g.op("resize_bilinear", {{"x", x}, {"target_size_height", 3}, {"target_size_width", 5}})});
}

}  // namespace
}  // namespace moka::vulkan_test
