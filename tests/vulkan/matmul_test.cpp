// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/common.h"
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

class Products : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
INSTANTIATE_TEST_SUITE_P(Vulkan, Products, testing::Bool(),
                         [](const auto& info) { return info.param ? "float16" : "float32"; });

TEST_P(Products, MatricesVectorsBatchesAndTransposes) {
  struct {
    Shape x, y;
    bool tx = false, ty = false;
  } const all[] = {
      {{70, 33}, {33, 81}},
      {{33, 70}, {33, 81}, true},
      {{70, 33}, {81, 33}, false, true},
      {{33, 7}, {9, 33}, true, true},
      {{2, 3, 5, 40}, {2, 3, 40, 6}},
      {{2, 1, 5, 40}, {3, 40, 66}},
      {{4, 9, 20}, {20, 11}},
      {{20}, {20, 40}},
      {{5, 20}, {20}},
      {{20}, {20}},
      {{3, 2, 20}, {20}},
      {{1, 300}, {70, 300}, false, true},
      {{2, 1, 3, 1, 8}, {5, 1, 8, 9}},
      {{1, 300}, {300, 70}},
      {{3, 1}, {1, 40}},
  };
  for (const auto& s : all) {
    Region g(GetParam());
    Value* y = g.op("matmul", {{"x", g.input(s.x)}, {"y", g.input(s.y)}, {"transpose_x", s.tx}, {"transpose_y", s.ty}});
    ASSERT_NE(y, nullptr);
    y->producer()->epilogue = {{"linear_activation", 0.5f, 1}, {"relu"}};
    g.expect_same({y});
  }
}

TEST_P(Products, LinearWithAndWithoutBiasAndAddend) {
  for (const Shape& x : {Shape{1, 40}, Shape{40}, Shape{3, 30, 40}, Shape{3, 40}}) {
    Region g(GetParam());
    Shape out = x;
    out[x.rank() - 1] = 70;
    Value* in = g.input(x);
    Value *weight = g.constant(g.random({70, 40})), *bias = g.constant(g.random({70}));
    g.expect_same({g.op("linear", {{"x", in}, {"weight", weight}}),
                   g.op("linear", {{"x", in}, {"weight", weight}, {"bias", bias}}),
                   g.op("linear", {{"x", in}, {"weight", weight}, {"bias", bias}, {"addend", g.input(out)}})});
  }
}

/// Several workgroups divide the sums on a large GPU. The last of them has less to add, or nothing.
TEST_P(Products, LongSums) {
  for (const int64_t depth : {1024, 1030, 1087, 4000}) {
    Region g(GetParam());
    Value *x = g.input({40, depth}, -0.1f, 0.1f), *weight = g.constant(g.random({70, depth}));
    Value* y = g.op(
        "linear", {{"x", x}, {"weight", weight}, {"bias", g.constant(g.random({70}))}, {"addend", g.input({40, 70})}});
    ASSERT_NE(y, nullptr);
    y->producer()->epilogue = {{"relu"}};
    const auto r = g.expect_same({y});
    if (!GetParam()) {
      EXPECT_EQ(r.counters.dispatches, card().shares_tiles() && card().is_large ? 2u : 1u);
    }
  }
  Region g(GetParam());
  Value* y = g.op("matmul", {{"x", g.input({2, 3, 8, 1200}, -0.1f, 0.1f)}, {"y", g.input({3, 1200, 33}, -1, 1)}});
  g.expect_same({y});
}

TEST_P(Products, MatricesWithBiasAndAddend) {
  for (const auto& [x, y] : {std::pair{Shape{9, 40}, Shape{40, 70}}, {{40}, {40, 70}}, {{3, 30, 40}, {3, 40, 70}}}) {
    Region g(GetParam());
    Shape out = x;
    out[x.rank() - 1] = 70;
    Value *a = g.input(x), *b = g.input(y), *bias = g.constant(g.random({70}));
    g.expect_same({g.op("matmul", {{"x", a}, {"y", b}, {"bias", bias}}),
                   g.op("matmul", {{"x", a}, {"y", b}, {"bias", bias}, {"addend", g.input(out)}})});
  }
}

TEST_P(Products, WeightsThatAreReadAsTheyAreStored) {
  struct {
    DType codes;
    Shape scale;
    bool offset = false;
    Shape table;
  } const all[] = {
      {DType::int8, {70, 1}},
      {DType::uint8, {1, 1}, true},
      {DType::int4, {35, 5}},
      {DType::uint4, {70, 1}, true},
      {DType::uint8, {}, false, {1, 1, 256}},
      {DType::uint4, {}, false, {2, 1, 16}},
      {DType::uint2, {}, false, {1, 1, 4}},
      {DType::uint4, {70, 1}, false, {1, 1, 16}},
  };
  for (const auto& s : all) {
    for (int rows : {1, 9}) {
      Region g(GetParam());
      const Shape shape{70, 40};
      kernel::StoredConstant stored;
      stored.elements = codes(s.codes, shape);
      if (s.scale.rank() > 0) stored.scale = g.random(s.scale, 0.01f, 0.02f);
      if (s.offset) stored.offset = g.random(s.scale, 1, 3);
      if (s.table.rank() > 0) stored.table = g.random(s.table);
      Value* x = g.input({rows, 40});
      Value* y = g.op("linear", {{"x", x}, {"weight", g.stored(stored)}, {"bias", g.constant(g.random({70}))}});
      const auto r = g.expect_same({y});
      EXPECT_EQ(r.kernels, std::vector<std::string>{"vulkan.linear.packed"}) << cat(s.codes);
      // Parameters for some rows of a matrix on the right apply to a part of each sum.
      const bool along = (s.scale.rank() > 0 && s.scale[0] > 1) || (s.table.rank() > 0 && s.table[0] > 1);
      if (along && GetParam()) continue;  // expanded weights are rounded
      Value* z = g.op("matmul",
                      {{"x", g.input({2, rows, 70})}, {"y", g.stored(stored)}, {"bias", g.constant(g.random({40}))}});
      const auto columns = g.expect_same({z});
      EXPECT_EQ(columns.kernels.back(), along ? "vulkan.matmul" : "vulkan.matmul.packed") << cat(s.codes);
    }
  }
}

TEST_P(Products, BatchesOfStoredWeights) {
  for (int batch : {1, 2})
    for (bool transposed : {false, true}) {
      Region g(GetParam());
      kernel::StoredConstant stored;
      stored.elements = codes(DType::uint4, transposed ? Shape{batch, 24, 40} : Shape{batch, 40, 24});
      stored.table = g.random({1, 1, 1, 16});
      g.expect_same({g.op("matmul", {{"x", g.input({batch, 9, 40})},
                                     {"y", g.stored(stored)},
                                     {"transpose_x", false},
                                     {"transpose_y", transposed}})});
    }
}

TEST_P(Products, Equations) {
  struct {
    const char* equation;
    Shape x, y;
  } const all[] = {
      {"ij,jk->ik", {9, 20}, {20, 70}},
      {"ij,kj->ki", {9, 20}, {70, 20}},
      {"nchw,nwhu->nchu", {2, 3, 5, 7}, {2, 7, 5, 6}},
      {"bhqd,bhkd->bhqk", {2, 3, 10, 8}, {2, 3, 11, 8}},
      {"bqhd,bkhd->bhqk", {2, 10, 3, 8}, {2, 11, 3, 8}},
      {"abc,bcd->ad", {5, 4, 6}, {4, 6, 9}},
      {"ab,cd->acbd", {3, 4}, {5, 6}},
      {"ab,ab->ab", {3, 4}, {3, 1}},
      {"ab,b->a", {3, 40}, {40}},
  };
  for (const auto& s : all) {
    Region g(GetParam());
    g.expect_same(
        {g.op("einsum", {{"values", std::vector<Value*>{g.input(s.x), g.input(s.y)}}, {"equation", s.equation}})});
  }
}

}  // namespace
}  // namespace moka::vulkan_test
