// SPDX-License-Identifier: Apache-2.0
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

class Movement : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
INSTANTIATE_TEST_SUITE_P(Movement, Movement, testing::Bool(),
                         [](const auto& info) { return info.param ? "float16" : "float32"; });

Tensor ints(std::initializer_list<int64_t> v) { return Tensor::i32(v); }

TEST_P(Movement, Transposes) {
  const std::pair<Shape, std::vector<int64_t>> all[] = {
      {{70, 45}, {1, 0}},           {{3, 40, 33}, {0, 2, 1}},           {{2, 33, 5, 40}, {0, 2, 3, 1}},
      {{4, 3, 2, 5}, {3, 1, 0, 2}}, {{2, 3, 4, 5, 6}, {4, 2, 0, 3, 1}}, {{34, 3, 65}, {2, 1, 0}},
  };
  Region g(GetParam());
  std::vector<Value*> out;
  for (const auto& [shape, perm] : all)
    out.push_back(g.op("transpose", {{"x", g.input(shape)}, {"perm", Tensor::i32(perm)}}));
  g.expect_same(out, 0);
}

TEST_P(Movement, Slices) {
  Region g(GetParam());
  Value* x = g.input({4, 10, 12});
  Tensor first = *Tensor::zeros(DType::boolean, {3});
  store_i64(first.view(), 0, 1);
  g.expect_same({g.op("slice_by_index", {{"x", x}, {"begin", ints({1, 2, 3})}, {"end", ints({3, 9, 11})}}),
                 g.op("slice_by_index",
                      {{"x", x}, {"begin", ints({0, 8, 1})}, {"end", ints({4, 0, 12})}, {"stride", ints({1, -3, 2})}}),
                 g.op("slice_by_index",
                      {{"x", x}, {"begin", ints({2, 0, 0})}, {"end", ints({3, 10, 12})}, {"squeeze_mask", first}}),
                 g.op("slice_by_size", {{"x", x}, {"begin", ints({0, 4, 0})}, {"size", ints({-1, 3, 12})}}),
                 g.op("reverse", {{"x", x}, {"axes", ints({0, 2})}}),
                 g.op("crop", {{"x", x}, {"crop_height", ints({1, 2})}, {"crop_width", ints({0, 5})}})},
                0);
}

TEST_P(Movement, BlocksOfPixels) {
  Region g(GetParam());
  Value* x = g.input({2, 12, 6, 8});
  std::vector<Value*> out;
  out.push_back(g.op("pixel_shuffle", {{"x", x}, {"upscale_factor", 2}}));
  out.push_back(g.op("pixel_unshuffle", {{"x", x}, {"downscale_factor", Tensor::scalar_i64(DType::uint32, 2)}}));
  out.push_back(g.op("depth_to_space", {{"x", x}, {"block_size", 2}}));
  out.push_back(g.op("space_to_depth", {{"x", x}, {"block_size", 2}}));
  const auto table = [](std::initializer_list<int64_t> v) {
    Tensor t = *Tensor::zeros(DType::int32, {2, 2});
    int64_t i = 0;
    for (int64_t e : v) store_i64(t.view(), i++, e);
    return t;
  };
  for (const auto& margins : {table({0, 0, 0, 0}), table({1, 2, 0, 4})})
    out.push_back(g.op("space_to_batch", {{"x", x}, {"block_shape", ints({3, 2})}, {"paddings", margins}}));
  Value* y = g.input({12, 3, 4, 5});
  for (const auto& margins : {table({0, 0, 0, 0}), table({1, 2, 0, 3})})
    out.push_back(g.op("batch_to_space", {{"x", y}, {"block_shape", ints({3, 2})}, {"crops", margins}}));
  g.expect_same(out, 0);
}

TEST_P(Movement, Joins) {
  Region g(GetParam());
  Value *a = g.input({2, 3, 5}), *b = g.input({2, 4, 5}), *c = g.input({2, 3, 5});
  const auto joined = [&](std::vector<Value*> v, int axis) {
    return g.op("concat", {{"values", v}, {"axis", axis}, {"interleave", false}});
  };
  std::vector<Value*> out{joined({a, b}, 1), joined({a, c}, 0), joined({a, c}, -1),
                          g.op("concat", {{"values", std::vector<Value*>{a, c}}, {"axis", 1}, {"interleave", true}}),
                          g.op("stack", {{"values", std::vector<Value*>{a, c}}, {"axis", 1}})};
  for (Value* v : g.ops("split", {{"x", b}, {"num_splits", 2}, {"axis", 1}})) out.push_back(v);
  for (Value* v : g.ops("split", {{"x", b}, {"split_sizes", ints({1, 1})}, {"axis", 0}})) out.push_back(v);
  g.expect_same(out, 0);
}

TEST_P(Movement, RepeatsAndWindows) {
  Region g(GetParam());
  Value* x = g.input({2, 3, 7});
  g.expect_same(
      {g.op("tile", {{"x", x}, {"reps", ints({2, 1, 3})}}), g.op("tile", {{"x", x}, {"reps", ints({1, 5, 1})}}),
       g.op("sliding_windows", {{"x", x}, {"axis", 2}, {"size", 3}, {"stride", 2}}),
       g.op("reshape", {{"x", x}, {"shape", ints({6, 7})}})},
      0);
}

TEST_P(Movement, Margins) {
  Region g(GetParam());
  Value* x = g.input({2, 3, 5, 4});
  std::vector<Value*> out;
  for (const char* mode : {"constant", "reflect", "replicate"})
    for (const auto& pad : {ints({2, 1, 3, 0}), ints({0, 1, 1, 0, 2, 2, 1, 3}), ints({0, 3})})
      out.push_back(g.op("pad", {{"x", x}, {"pad", pad}, {"mode", mode}, {"constant_val", 1.5f}}));
  // Longer than the axis: mirrored again.
  out.push_back(g.op("pad", {{"x", x}, {"pad", ints({9, 7})}, {"mode", "reflect"}}));
  g.expect_same(out, 0);
}

TEST(Updates, ReplaceASlice) {
  MOKA_NEEDS_VULKAN();
  Region g(false, Opset::ios18);
  Value *x = g.input({4, 6, 5}), *u = g.input({2, 3, 5});
  const auto updated = [&](std::initializer_list<int64_t> begin, std::initializer_list<int64_t> end,
                           std::initializer_list<int64_t> stride) {
    return g.op("slice_update",
                {{"x", x}, {"update", u}, {"begin", ints(begin)}, {"end", ints(end)}, {"stride", ints(stride)}});
  };
  g.expect_same({updated({1, 0, 0}, {3, 6, 5}, {1, 2, 1}), updated({2, 2, 0}, {4, 5, 5}, {1, 1, 1})}, 0);
}

TEST(Updates, OfIntegersAndBooleans) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input(Tensor::i32({7, -7, 2147483647, -2147483648LL, 5, 0}));
  Value* y = g.op("reshape", {{"x", x}, {"shape", ints({2, 3})}});
  Value* flag = g.op("greater", {{"x", y}, {"y", g.constant(Tensor::i32({0}))}});
  g.expect_same(
      {g.op("transpose", {{"x", y}, {"perm", ints({1, 0})}}), g.op("transpose", {{"x", flag}, {"perm", ints({1, 0})}}),
       g.op("reverse", {{"x", flag}}), g.op("tile", {{"x", y}, {"reps", ints({2, 2})}})},
      0);
}

TEST(Copies, OfPartsOfOneResultNeedNoBarriers) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value *a = g.input({3, 5}), *b = g.input({3, 4}), *c = g.input({3, 6});
  const auto r = g.expect_same(
      {g.op("concat", {{"values", std::vector<Value*>{a, b, c}}, {"axis", 1}, {"interleave", false}})}, 0);
  EXPECT_EQ(r.counters.dispatches, 3u);
  auto features = devices::vulkan::Context::probe();
  EXPECT_EQ(r.counters.barriers, features->unified ? 0u : 2u);
}

}  // namespace
}  // namespace moka::vulkan_test
