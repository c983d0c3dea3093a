// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "devices/graph_util.h"

/// topk, argsort, cumsum and reduce_log_sum_exp, compared with the reference.
namespace moka::devices_test {
namespace {

using namespace ir;

enum class Values { any, ties, odd };

/// Numbers of which many are equal, or with infinities, NaN and both zeros.
Tensor numbers(Graph& g, const Shape& shape, Values kind) {
  Tensor t = g.random(shape, -4, 4);
  for (int64_t i = 0; i < t.count() && kind != Values::any; i++) {
    float& v = t.mut<float>()[static_cast<size_t>(i)];
    v = std::round(v);
    if (kind == Values::ties) continue;
    const float odd[] = {
        std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), -0.0f, 0.0f,
        -std::nanf("")};
    if (i % 5 < 2) v = odd[static_cast<size_t>(i / 5 % 6)];
  }
  return t;
}

void expect_same_order(Graph& g, std::vector<Value*> outputs) {
  for (Value* v : outputs) ASSERT_NE(v, nullptr);
  g.function().body().set_outputs(outputs);
  const auto got = run(g.function(), g.inputs(), true, 2), expected = run(g.function(), g.inputs(), false, 1);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  EXPECT_TRUE(got->has("cpu.sort")) << got->kernels;
  for (size_t i = 0; i < outputs.size(); i++)
    EXPECT_EQ(std::memcmp(got->outputs[i].data(), expected->outputs[i].data(), got->outputs[i].bytes()), 0)
        << "output " << i;
}

TEST(Sorting, Topk) {
  struct Case {
    Shape shape;
    int axis;
    int64_t k;
  };
  const Case cases[] = {{{3, 50}, 1, 1},        {{3, 50}, 1, 50},        {{2, 3000}, -1, 5},   {{5000}, 0, 5000},
                        {{1, 20000}, 1, 100},   {{1, 20000}, 1, 4000},   {{1, 9000}, 1, 8999}, {{2, 700, 3}, 1, 10},
                        {{2, 2500, 3}, 1, 600}, {{1, 100000}, 1, 10000}, {{4, 1}, 1, 1}};
  for (const Case& c : cases)
    for (const bool ascending : {false, true})
      for (Values kind : {Values::any, Values::ties, Values::odd}) {
        SCOPED_TRACE(cat(c.shape, ", ", c.k, ascending ? " ascending, " : ", ", static_cast<int>(kind)));
        Graph g;
        expect_same_order(g, g.ops("topk", {{"x", g.input_of(numbers(g, c.shape, kind))},
                                            {"k", Tensor::scalar_i64(DType::int32, c.k)},
                                            {"axis", c.axis},
                                            {"ascending", ascending}}));
      }
}

/// More NaN than the buffer of candidates holds, before the numbers.
TEST(Sorting, TopkOfManyNaN) {
  for (const bool ascending : {false, true})
    for (int64_t every : {2, 9, 100}) {
      SCOPED_TRACE(cat(ascending ? "ascending, " : "descending, ", every));
      Graph g;
      Tensor x = g.random({2, 1500}, -4, 4);
      for (int64_t i = 0; i < x.count(); i++)
        if (i % every != 0) x.mut<float>()[static_cast<size_t>(i)] = std::nanf("");
      expect_same_order(g, g.ops("topk", {{"x", g.input_of(x)},
                                          {"k", Tensor::scalar_i64(DType::int32, 100)},
                                          {"axis", 1},
                                          {"ascending", ascending}}));
    }
}

TEST(Sorting, Argsort) {
  for (const Shape& shape : {Shape{7, 40}, Shape{2, 2000, 2}, Shape{1, 30000}})
    for (const bool ascending : {false, true})
      for (Values kind : {Values::any, Values::ties, Values::odd}) {
        SCOPED_TRACE(cat(shape, ascending ? " ascending, " : ", ", static_cast<int>(kind)));
        Graph g;
        expect_same_order(
            g, {g.op("argsort", {{"x", g.input_of(numbers(g, shape, kind))}, {"axis", 1}, {"ascending", ascending}})});
      }
}

TEST(Sums, Running) {
  for (const Shape& shape : {Shape{9000}, Shape{3, 700}, Shape{2, 60, 300}, Shape{40, 5}})
    for (int axis = 0; axis < shape.rank(); axis++)
      for (const bool exclusive : {false, true})
        for (const bool reverse : {false, true}) {
          SCOPED_TRACE(cat(shape, ", ", axis, exclusive, reverse));
          Graph g;
          const devices_test::Run got = expect_same(
              g, {g.op("cumsum",
                       {{"x", g.input(shape)}, {"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}})});
          EXPECT_TRUE(got.has("cpu.cumsum")) << got.kernels;
        }
}

TEST(Sums, LogOfExponentials) {
  for (const Shape& shape : {Shape{3, 4000}, Shape{2, 70, 600}, Shape{40, 5, 1}})
    for (int axis = 0; axis < shape.rank(); axis++)
      for (const bool odd : {false, true}) {
        SCOPED_TRACE(cat(shape, ", ", axis, odd));
        Graph g;
        Tensor x = g.random(shape, -100, 100);
        const float inf = std::numeric_limits<float>::infinity();
        if (odd)
          for (int64_t i = 0; i < x.count(); i += 3)
            x.mut<float>()[static_cast<size_t>(i)] = i % 7 == 0 ? std::nanf("") : i % 2 == 0 ? inf : -inf;
        const devices_test::Run got = expect_same(
            g,
            {g.op("reduce_log_sum_exp", {{"x", g.input_of(x)}, {"axes", Tensor::i32({axis})}, {"keep_dims", true}})});
        EXPECT_TRUE(got.has("cpu.log_sum_exp")) << got.kernels;
      }
}

}  // namespace
}  // namespace moka::devices_test
