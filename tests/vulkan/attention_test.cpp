// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

class Attention : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
INSTANTIATE_TEST_SUITE_P(Vulkan, Attention, testing::Bool(),
                         [](const auto& info) { return info.param ? "float16" : "float32"; });

TEST_P(Attention, HeadsRowsKeysAndMasks) {
  struct {
    Shape query, key, value, mask;
  } const all[] = {
      {{2, 4, 33, 40}, {2, 1, 130, 40}, {2, 1, 130, 7}, {33, 130}},
      {{3, 20, 5}, {1, 20, 5}, {3, 20, 300}, {3, 20, 20}},
      {{2, 2, 1, 5}, {2, 2, 9, 5}, {2, 2, 9, 300}, {2, 1, 1, 9}},
      {{2, 2, 11, 8}, {2, 2, 70, 8}, {2, 2, 70, 4}, {2, 1, 1, 70}},  // one value for each key
  };
  for (const auto& s : all) {
    Region g(GetParam(), Opset::ios18);
    Value *q = g.input(s.query, -3, 3), *k = g.input(s.key), *v = g.input(s.value);
    std::vector<Value*> results = {g.op("scaled_dot_product_attention", {{"query", q}, {"key", k}, {"value", v}})};
    if (s.mask.rank() > 0) {
      Value* mask = g.input(s.mask, -2, 2);
      Value* some = g.op("greater", {{"x", mask}, {"y", g.constant(Tensor::f32({1}, std::vector<float>{0}))}});
      for (Value* m : {mask, some})
        results.push_back(
            g.op("scaled_dot_product_attention", {{"query", q}, {"key", k}, {"value", v}, {"attn_mask", m}}));
    }
    g.expect_same(results);
  }
}

TEST_P(Attention, RowsWithoutKeysAreNoNumbers) {
  Region g(GetParam(), Opset::ios18);
  std::vector<float> mask(3 * 80, -INFINITY);
  for (int i = 66; i < 80; i++) mask[static_cast<size_t>(i)] = 0;  // row 0 has keys in its second block only
  Value* y = g.op("scaled_dot_product_attention", {{"query", g.input({2, 3, 4})},
                                                   {"key", g.input({2, 80, 4})},
                                                   {"value", g.input({2, 80, 4})},
                                                   {"attn_mask", g.constant(Tensor::f32({3, 80}, mask))}});
  g.expect_same({y});
}

TEST_P(Attention, HeadsAnywhereInTheirTensors) {
  // Query, key and value are side by side in one tensor [batch, rows, 3, heads, width].
  const int batch = 2, rows = 21, heads = 3, width = 16, line = 3 * heads * width;
  for (bool rows_first : {false, true}) {
    Region g(GetParam());
    Value* x = g.input({batch, rows, 3, heads, width});
    auto steps = [&](int which) { return Ints{which * heads * width, rows * line, width, line, 1}; };
    g.expect_same({g.op("moka_attention", {{"query", x},
                                           {"key", x},
                                           {"value", x},
                                           {"sizes", Ints{batch, heads, rows, rows, width, width}},
                                           {"query_steps", steps(0)},
                                           {"key_steps", steps(1)},
                                           {"value_steps", steps(2)},
                                           {"scale", 0.25f},
                                           {"rows_first", rows_first}})});
  }
}

/// States may keep keys and values in another type than the query has.
TEST(Attention, KeysAndValuesOfAnotherType) {
  MOKA_NEEDS_VULKAN();
  for (bool half : {false, true}) {
    Region g;
    const auto of = [&](const Shape& shape, bool is_half) {
      Value* v = g.input(shape);
      return is_half ? g.op("cast", {{"x", v}, {"dtype", "fp16"}}) : v;
    };
    const int heads = 2, rows = 3, keys = 70, width = 8;
    g.expect_same({g.op("moka_attention", {{"query", of({1, heads, rows, width}, half)},
                                           {"key", of({1, heads, keys, width}, !half)},
                                           {"value", of({1, heads, keys, width}, !half)},
                                           {"sizes", Ints{1, heads, rows, keys, width, width}},
                                           {"query_steps", Ints{0, heads * rows * width, rows * width, width, 1}},
                                           {"key_steps", Ints{0, heads * keys * width, keys * width, width, 1}},
                                           {"value_steps", Ints{0, heads * keys * width, keys * width, width, 1}},
                                           {"scale", 0.25f},
                                           {"rows_first", false}})},
                  half ? 2e-3 : 1e-4);
  }
}

}  // namespace
}  // namespace moka::vulkan_test
