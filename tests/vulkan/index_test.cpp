// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

class Indices : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
INSTANTIATE_TEST_SUITE_P(Indices, Indices, testing::Bool(),
                         [](const auto& info) { return info.param ? "float16" : "float32"; });

/// Numbers of a tensor of int32.
Tensor whole(const Shape& shape, const std::vector<int64_t>& v) {
  Tensor t = *Tensor::zeros(DType::int32, shape);
  for (int64_t i = 0; i < t.count(); i++) store_i64(t.view(), i, v[static_cast<size_t>(i) % v.size()]);
  return t;
}

TEST_P(Indices, GatherFromEitherEnd) {
  Region g(GetParam(), Opset::ios16);
  Value* x = g.input({4, 5, 6});
  Value* few = g.input(whole({2, 3}, {0, -1, 2, 3, -4, 1}));
  Value* far = g.input(whole({3}, {7, -9, 2}));  // beyond the axis: the nearest
  std::vector<Value*> out;
  for (int axis : {0, 1, 2})
    for (Value* at : {few, far}) out.push_back(g.op("gather", {{"x", x}, {"indices", at}, {"axis", axis}}));
  out.push_back(
      g.op("gather", {{"x", x}, {"indices", g.input(whole({4, 2}, {1, 0, 3, 2}))}, {"axis", 2}, {"batch_dims", 1}}));
  out.push_back(
      g.op("gather_along_axis", {{"x", x}, {"indices", g.input(whole({4, 2, 6}, {1, 4, -2, 0, 3}))}, {"axis", 1}}));
  out.push_back(g.op("gather_nd", {{"x", x}, {"indices", g.input(whole({3, 2}, {1, 4, -2, 0, 3, -1}))}}));
  out.push_back(
      g.op("gather_nd", {{"x", x}, {"indices", g.input(whole({4, 2, 1}, {1, 4, -2, 0, 3}))}, {"batch_dims", 1}}));
  // An embedding, whose table is a constant.
  out.push_back(g.op("gather", {{"x", g.constant(g.random({50, 8}))}, {"indices", few}, {"axis", 0}}));
  g.expect_same(out, 0);
}

TEST_P(Indices, OfSixteenBits) {
  Region g(GetParam());
  Value *x = g.input({4, 5, 6}), *at = g.input(whole({2, 3}, {0, 3, 2, 1, 1, 3}));
  Value *some = g.op("cast", {{"x", at}, {"dtype", "uint16"}}),
        *few = g.op("cast", {{"x", g.input(whole({3}, {-1, 70000, 2}))}, {"dtype", "int16"}});
  std::vector<Value*> out;
  for (Value* v : {some, few}) {
    out.push_back(g.op("gather", {{"x", x}, {"indices", v}, {"axis", 1}}));
    out.push_back(g.op("cast", {{"x", v}, {"dtype", "int32"}}));
  }
  out.push_back(g.op("gather_nd", {{"x", x}, {"indices", some}}));
  g.expect_same(out, 0);
}

TEST_P(Indices, ScatterInTheOrderOfUpdates) {
  for (const char* mode : {"update", "add", "sub", "mul", "div", "max", "min"}) {
    Region g(GetParam());
    Value* x = g.input({4, 5, 6}, 0.5f, 2);
    std::vector<Value*> out;
    // Equal indices, negative ones and some outside.
    Value* at = g.input(whole({4}, {1, -3, 1, 9}));
    out.push_back(
        g.op("scatter",
             {{"data", x}, {"indices", at}, {"updates", g.input({4, 4, 6}, 0.5f, 2)}, {"axis", 1}, {"mode", mode}}));
    out.push_back(g.op("scatter_along_axis", {{"data", x},
                                              {"indices", g.input(whole({4, 5, 3}, {1, 5, -2, 1, 1, 0, 7}))},
                                              {"updates", g.input({4, 5, 3}, 0.5f, 2)},
                                              {"axis", 2},
                                              {"mode", mode}}));
    out.push_back(g.op("scatter_nd", {{"data", x},
                                      {"indices", g.input(whole({5, 2}, {1, 4, 1, 4, 3, 0, -1, 2, 9, 9}))},
                                      {"updates", g.input({5, 6}, 0.5f, 2)},
                                      {"mode", mode}}));
    g.expect_same(out);
  }
}

TEST_P(Indices, RunningSums) {
  Region g(GetParam());
  std::vector<Value*> out;
  for (const auto& [shape, axis] :
       std::vector<std::pair<Shape, int>>{{{3, 7}, 1}, {{2, 700}, 1}, {{40, 3, 5}, 0}, {{300, 2}, 0}})
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true})
        out.push_back(
            g.op("cumsum",
                 {{"x", g.input(shape, -0.1f, 0.1f)}, {"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}}));
  g.expect_same(out);
}

TEST_P(Indices, SortWithEqualElements) {
  Region g(GetParam());
  std::vector<float> v(3 * 40);
  for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<float>(i * 13 % 17);
  v[5] = NAN;
  Value *x = g.input(Tensor::f32({3, 40}, v)), *y = g.input({4, 30, 3});
  std::vector<Value*> out;
  for (bool ascending : {false, true}) {
    for (Value* p : g.ops("topk", {{"x", x}, {"k", 7}, {"axis", 1}, {"ascending", ascending}})) out.push_back(p);
    for (Value* p : g.ops("topk", {{"x", y}, {"k", 30}, {"axis", 1}, {"ascending", ascending}})) out.push_back(p);
    out.push_back(g.op("argsort", {{"x", x}, {"axis", 0}, {"ascending", ascending}}));
  }
  g.expect_same(out, 0);
}

TEST_P(Indices, Fills) {
  Region g(GetParam());
  Value *x = g.input({2, 5, 7}), *at = g.input(whole({2, 3}, {0, 4, -1, 2, 9, 1}));
  std::vector<Value*> out;
  for (int axis : {-1, 0, 1})
    out.push_back(
        g.op("one_hot",
             {{"indices", at}, {"one_hot_vector_size", 5}, {"axis", axis}, {"on_value", 2.5f}, {"off_value", -1.f}}));
  out.push_back(g.op("one_hot", {{"indices", at}, {"one_hot_vector_size", 5}}));
  for (const auto& [lower, upper] : {std::pair(0, -1), std::pair(-1, 0), std::pair(1, 2), std::pair(-1, -1)})
    out.push_back(g.op("band_part", {{"x", x}, {"lower", lower}, {"upper", upper}}));
  out.push_back(g.op("reverse_sequence",
                     {{"x", x}, {"lengths", Tensor::i32({3, 1, 5, 0, 2})}, {"seq_axis", 2}, {"batch_axis", 1}}));
  g.expect_same(out, 0);
}

TEST_P(Indices, SampledImages) {
  Region g(GetParam());
  Value* x = g.input({2, 3, 6, 5});
  std::vector<Value*> out;
  for (const char* padding : {"constant", "border", "reflection", "symmetric"})
    for (bool align : {false, true})
      for (const char* range : {"normalized_minus_one_to_one", "normalized_zero_to_one"})
        out.push_back(g.op("resample", {{"x", x},
                                        {"coordinates", g.input({2, 4, 3, 2}, -1.7f, 1.7f)},
                                        {"sampling_mode", "bilinear"},
                                        {"padding_mode", padding},
                                        {"padding_value", 0.5f},
                                        {"coordinates_mode", range},
                                        {"align_corners", align}}));
  for (const char* sampling : {"bilinear", "nearest"})
    out.push_back(g.op("resample", {{"x", x},
                                    {"coordinates", g.input(whole({2, 3, 3, 2}, {0, 1, -1, 4, 5, 2, 7}))},
                                    {"sampling_mode", sampling},
                                    {"padding_mode", "constant"},
                                    {"padding_value", 0.5f},
                                    {"coordinates_mode", "unnormalized"},
                                    {"align_corners", true}}));
  g.expect_same(out, GetParam() ? 2e-3 : 1e-4);
}

TEST(Boxes, OfOneOrOfEveryImage) {
  MOKA_NEEDS_VULKAN();
  const std::vector<float> corners = {0.5f, 1, 4, 4.5f, 5, 4, 0, -2, -1, -1, 9, 9};
  for (const char* mode : {"CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST"})
    for (const char* sampling : {"DEFAULT", "ALIGN_CORNERS", "UNALIGN_CORNERS"}) {
      Region every(false, Opset::ios15), listed;
      every.expect_same({every.op("crop_resize", {{"x", every.input({2, 3, 6, 7})},
                                                  {"roi", every.input(Tensor::f32({3, 1, 4, 1, 1}, corners))},
                                                  {"target_height", 3},
                                                  {"target_width", 4},
                                                  {"sampling_mode", sampling},
                                                  {"box_coordinate_mode", mode}})});
      listed.expect_same({listed.op("crop_resize", {{"x", listed.input({2, 3, 6, 7})},
                                                    {"boxes", listed.input(Tensor::f32({3, 4}, corners))},
                                                    {"box_indices", listed.constant(Tensor::i32({1, 0, 1}))},
                                                    {"target_height", 3},
                                                    {"target_width", 4},
                                                    {"sampling_mode", sampling},
                                                    {"box_coordinate_mode", mode}})});
    }
}

TEST(Refusals, SayWhy) {
  MOKA_NEEDS_VULKAN();
  const auto reason = [](Region& g, Value* v) { return g.run({v}).refusal; };
  Region a;
  EXPECT_EQ(reason(a, a.op("reverse_sequence", {{"x", a.input({2, 3})},
                                                {"lengths", a.input(Tensor::i32({1, 2}))},
                                                {"seq_axis", 1},
                                                {"batch_axis", 0}})),
            "vulkan.reverse_sequence: lengths that are checked while running");
  Region b(false, Opset::ios17);
  EXPECT_EQ(reason(b, b.op("gather", {{"x", b.input({4, 3})},
                                      {"indices", b.input(Tensor::i32({1, 2}))},
                                      {"axis", 0},
                                      {"validate_indices", true}})),
            "vulkan.gather: indices that are checked while running");
}

}  // namespace
}  // namespace moka::vulkan_test
