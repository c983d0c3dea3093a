// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "devices/graph_util.h"

/// Gathers and scatters by variable indices, floor_div and mod, compared with the reference bit by bit.
namespace moka::devices_test {
namespace {

using namespace ir;

/// Integers from `low` to `high`, of which many are equal, in a type that holds them.
Tensor integers(DType dtype, const Shape& shape, int64_t low, int64_t high, unsigned seed) {
  std::mt19937 draw(seed);
  Tensor t = *Tensor::zeros(dtype, shape);
  TensorView v = t.view();
  v.data = t.mutable_data();
  for (int64_t i = 0; i < t.count(); i++)
    store_i64(v, i, low + static_cast<int64_t>(draw() % static_cast<uint64_t>(high - low + 1)));
  return t;
}

/// Numbers of this type; floats have NaN and infinities among them.
Tensor values(Graph& g, DType dtype, const Shape& shape, unsigned seed) {
  if (dtype != DType::fp32) return integers(dtype, shape, -100, 100, seed);
  Tensor t = g.random(shape, -4, 4);
  const float inf = std::numeric_limits<float>::infinity();
  const float odd[] = {std::nanf(""), inf, -inf, -0.0f, 0.0f};
  for (int64_t i = seed; i < t.count(); i += 7)
    t.mut<float>()[static_cast<size_t>(i)] = odd[static_cast<size_t>(i % 5)];
  return t;
}

void expect_same_by_bits(Graph& g, Value* y, std::string_view kernel) {
  ASSERT_NE(y, nullptr);
  g.function().body().set_outputs({y});
  const auto expected = run(g.function(), g.inputs(), false, 1);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  for (const int threads : {1, 3}) {
    const auto got = run(g.function(), g.inputs(), true, threads);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_TRUE(got->has(kernel)) << got->kernels;
    const Tensor &a = got->outputs[0], &e = expected->outputs[0];
    ASSERT_TRUE(a.shape() == e.shape());
    for (int64_t i = 0; i < e.count(); i++) {
      if (is_float(e.dtype()) && std::isnan(load_f64(e.view(), i)) && std::isnan(load_f64(a.view(), i))) continue;
      const auto bytes = static_cast<size_t>(bits(e.dtype()) / 8), at = static_cast<size_t>(i) * bytes;
      ASSERT_EQ(std::memcmp(static_cast<const std::byte*>(a.data()) + at, static_cast<const std::byte*>(e.data()) + at,
                            bytes),
                0)
          << "element " << i << ": " << load_f64(a.view(), i) << ", expected " << load_f64(e.view(), i);
    }
  }
}

const DType kTypes[] = {DType::fp32, DType::int32, DType::fp16, DType::int8};

TEST(Indices, Gather) {
  struct Case {
    Shape x, indices;
    int axis, batch;
  };
  const Case cases[] = {{{9, 40}, {5}, 0, 0},         {{9, 40}, {5, 700}, 1, 0},  {{3, 9, 2, 4}, {6}, 1, 0},
                        {{3, 9, 2, 4}, {3, 6}, 1, 1}, {{2, 3, 50}, {2, 9}, 2, 1}, {{7, 3000}, {4}, -2, 0},
                        {{2, 5, 700}, {1, 3}, 1, 0},  {{40}, {3, 1000}, 0, 0}};
  for (const Case& c : cases)
    for (DType t : kTypes)
      for (DType of : {DType::int32, DType::int16, DType::int8, DType::uint8}) {
        SCOPED_TRACE(cat(c.x, c.indices, c.axis, c.batch, t, of));
        Graph g;
        const int64_t size = c.x[c.axis < 0 ? c.axis + c.x.rank() : c.axis], low = of == DType::uint8 ? 0 : -size - 2;
        expect_same_by_bits(g,
                            g.op("gather", {{"x", g.input_of(values(g, t, c.x, 1))},
                                            {"indices", g.input_of(integers(of, c.indices, low, size + 2, 2))},
                                            {"axis", c.axis},
                                            {"batch_dims", c.batch}}),
                            "cpu.gather_rows");
      }
}

TEST(Indices, GatherVectors) {
  struct Case {
    Shape x, indices;
    int batch;
  };
  const Case cases[] = {{{9, 40}, {5, 1}, 0},         {{9, 10}, {700, 2}, 0},     {{3, 9, 2, 4}, {6, 2, 2}, 0},
                        {{3, 9, 2, 4}, {3, 6, 2}, 1}, {{2, 3, 50}, {2, 3, 1}, 2}, {{4, 5, 6}, {3}, 0}};
  for (const Case& c : cases)
    for (DType t : kTypes)
      for (DType of : {DType::int32, DType::uint16}) {
        SCOPED_TRACE(cat(c.x, c.indices, c.batch, t, of));
        Graph g;
        expect_same_by_bits(
            g,
            g.op("gather_nd", {{"x", g.input_of(values(g, t, c.x, 1))},
                               {"indices", g.input_of(integers(of, c.indices, of == DType::int32 ? -12 : 0, 12, 2))},
                               {"batch_dims", c.batch}}),
            "cpu.gather_rows");
      }
}

TEST(Indices, GatherRefusesInvalidOnes) {
  for (const char* op : {"gather", "gather_nd"}) {
    Graph g;
    Value* y = g.op(op, {{"x", g.input({9, 40})},
                         {"indices", g.input_of(integers(DType::int32, {2, 1}, 9, 9, 1))},
                         {"validate_indices", true}});
    ASSERT_NE(y, nullptr);
    g.function().body().set_outputs({y});
    const auto got = run(g.function(), g.inputs(), true, 1);
    ASSERT_FALSE(got.ok());
    EXPECT_NE(got.error().to_string().find("from 0 to 8, got 9"), std::string::npos) << got.error().to_string();
  }
}

const char* const kModes[] = {"update", "add", "sub", "mul", "div", "max", "min"};

TEST(Indices, Scatter) {
  struct Case {
    const char* op;
    Shape data, indices, updates;
    int axis;
  };
  const Case cases[] = {{"scatter", {9, 40}, {5}, {5, 40}, 0},
                        {"scatter", {9, 40}, {700}, {9, 700}, 1},
                        {"scatter", {3, 9, 200}, {2, 6}, {3, 2, 6, 200}, 1},
                        {"scatter", {50}, {}, {}, 0},
                        {"scatter_nd", {9, 40}, {700, 2}, {700}, 0},
                        {"scatter_nd", {9, 4, 130}, {3, 7, 2}, {3, 7, 130}, 0},
                        {"scatter_nd", {9, 40}, {5, 1}, {5, 40}, 0},
                        {"scatter_along_axis", {9, 40}, {9, 700}, {9, 700}, 1},
                        {"scatter_along_axis", {9, 1100}, {5, 1100}, {5, 1100}, 0},
                        {"scatter_along_axis", {2, 9, 3}, {2, 20, 3}, {2, 20, 3}, -2}};
  for (Opset opset : {Opset::ios16, Opset::ios17})
    for (const Case& c : cases)
      for (const char* mode : kModes)
        for (DType t : {DType::fp32, DType::int32}) {
          SCOPED_TRACE(cat(c.op, c.data, c.indices, mode, t, opset == Opset::ios16));
          Graph g(opset);
          std::vector<NamedArg> args{{"data", g.input_of(values(g, t, c.data, 1))},
                                     {"indices", g.input_of(integers(DType::int32, c.indices, -12, 12, 2))},
                                     {"updates", g.input_of(values(g, t, c.updates, 3))},
                                     {"mode", mode}};
          if (std::string_view(c.op) != "scatter_nd") args.emplace_back("axis", c.axis);
          expect_same_by_bits(g, g.op(c.op, args), "cpu.scatter");
        }
}

TEST(Indices, ScatterOfHalves) {
  Graph g(Opset::ios16);
  Value* y = g.op("scatter", {{"data", g.input_of(integers(DType::fp16, {9, 40}, -9, 9, 1))},
                              {"indices", g.input_of(integers(DType::int32, {5}, 0, 8, 2))},
                              {"updates", g.input_of(integers(DType::fp16, {5, 40}, -9, 9, 3))},
                              {"axis", 0},
                              {"mode", "update"}});
  expect_same_by_bits(g, y, "cpu.scatter");
}

/// The result takes over the memory of data that nothing else reads.
TEST(Indices, ScatterInPlace) {
  for (const bool again : {false, true}) {
    Graph g;
    Value* data = g.op("relu", {{"x", g.input({60, 300})}});
    Value* y = g.op("scatter", {{"data", data},
                                {"indices", g.input_of(integers(DType::int32, {30}, 0, 59, 2))},
                                {"updates", g.input({30, 300})},
                                {"axis", 0},
                                {"mode", "add"}});
    if (again) y = g.op("add", {{"x", y}, {"y", data}});
    expect_same_by_bits(g, y, "cpu.scatter");
  }
}

TEST(Indices, ScatterRefusesInvalidOnes) {
  Graph g;
  Value* y = g.op("scatter", {{"data", g.input({9, 4})},
                              {"indices", g.input_of(integers(DType::int32, {2}, -1, -1, 1))},
                              {"updates", g.input({2, 4})},
                              {"axis", 0},
                              {"validate_indices", true}});
  ASSERT_NE(y, nullptr);
  g.function().body().set_outputs({y});
  const auto got = run(g.function(), g.inputs(), true, 1);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().to_string().find("from 0 to 8, got -1"), std::string::npos) << got.error().to_string();
}

TEST(Division, Broadcast) {
  const std::pair<Shape, Shape> cases[] = {
      {{3, 700}, {3, 700}}, {{3, 700}, {1}}, {{1}, {3, 700}}, {{3, 1}, {2, 1, 700}}};
  for (const char* op : {"floor_div", "mod"})
    for (const auto& [x, y] : cases)
      for (DType t : {DType::fp32, DType::int32}) {
        SCOPED_TRACE(cat(op, x, y, t));
        Graph g;
        expect_same_by_bits(g, g.op(op, {{"x", g.input_of(values(g, t, x, 1))}, {"y", g.input_of(values(g, t, y, 2))}}),
                            "cpu.division");
      }
}

/// Divisors of 0 and -1, the least integer, NaN, infinities, both zeros, and quotients that no float holds.
TEST(Division, OddNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  const float odd[] = {std::nanf(""), inf, -inf, 0.0f, -0.0f, 1, -1, 7, -7, 0.1f, -0.3f, 3e38f, -3e38f, 1e-45f, 1e20f};
  const int32_t least = std::numeric_limits<int32_t>::min();
  const int32_t whole[] = {0,  1,   -1, 7,  -7, least, least + 1, std::numeric_limits<int32_t>::max(),
                           12, -12, 3,  -3, 5,  2,     8};
  const Shape all{225};
  Tensor a = *Tensor::zeros(DType::fp32, all), b = *Tensor::zeros(DType::fp32, all),
         c = *Tensor::zeros(DType::int32, all), d = *Tensor::zeros(DType::int32, all);
  for (size_t i = 0; i < 225; i++) {
    a.mut<float>()[i] = odd[i / 15];
    b.mut<float>()[i] = odd[i % 15];
    c.mut<int32_t>()[i] = whole[i / 15];
    d.mut<int32_t>()[i] = whole[i % 15];
  }
  for (const char* op : {"floor_div", "mod"}) {
    Graph g, of_integers;
    expect_same_by_bits(g, g.op(op, {{"x", g.input_of(a)}, {"y", g.input_of(b)}}), "cpu.division");
    expect_same_by_bits(of_integers,
                        of_integers.op(op, {{"x", of_integers.input_of(c)}, {"y", of_integers.input_of(d)}}),
                        "cpu.division");
  }
}

TEST(L2Pool, Windows) {
  struct Case {
    Shape x;
    std::vector<int64_t> kernel, strides, pad;
    bool ceil;
  };
  const Case cases[] = {{{2, 5, 13, 17}, {3, 3}, {1, 1}, {1, 1, 1, 1}, false},
                        {{2, 5, 13, 17}, {3, 2}, {2, 3}, {0, 2, 1, 0}, false},
                        {{1, 20, 13, 17}, {3, 3}, {2, 2}, {1, 1, 1, 1}, true},
                        {{1, 3, 6, 7}, {5, 5}, {1, 1}, {4, 4, 4, 4}, false},
                        {{2, 3, 40}, {4}, {2}, {1, 1}, false}};
  for (const Case& c : cases)
    for (const bool blocked : {false, true}) {
      SCOPED_TRACE(cat(c.x, blocked));
      Graph g;
      Value* x = g.input(c.x);
      if (blocked && c.x.rank() == 4)
        x = g.op("conv", {{"x", x}, {"weight", g.random({24, c.x[1], 3, 3})}, {"pad_type", "same"}});
      const devices_test::Run got = expect_same(g, {g.op("l2_pool", {{"x", x},
                                                                     {"kernel_sizes", Tensor::i32(c.kernel)},
                                                                     {"strides", Tensor::i32(c.strides)},
                                                                     {"pad_type", "custom"},
                                                                     {"pad", Tensor::i32(c.pad)},
                                                                     {"ceil_mode", c.ceil}})});
      EXPECT_TRUE(got.has("cpu.l2_pool")) << got.kernels;
    }
}

TEST(Pairs, OfIntegersAndBooleans) {
  const std::pair<Shape, Shape> shapes[] = {{{3, 40}, {3, 40}},   {{3, 7000}, {1}},   {{}, {5}},
                                            {{5, 1, 33}, {4, 1}}, {{1, 50}, {60, 1}}, {{2, 1}, {3, 1, 700}}};
  for (const auto& [x, y] : shapes) {
    for (const char* name : {"add", "sub", "mul", "maximum", "minimum", "equal", "not_equal", "less", "less_equal",
                             "greater", "greater_equal"}) {
      SCOPED_TRACE(cat(name, x, y));
      Graph g;
      const std::vector<NamedArg> args = {{"x", g.input_of(integers(DType::int32, x, -2000000000, 2000000000, 1))},
                                          {"y", g.input_of(integers(DType::int32, y, -2000000000, 2000000000, 2))}};
      expect_same_by_bits(g, g.op(name, args), "cpu.integers");
    }
    for (const char* name : {"logical_and", "logical_or", "logical_xor"}) {
      SCOPED_TRACE(cat(name, x, y));
      Graph g;
      expect_same_by_bits(g,
                          g.op(name, {{"x", g.input_of(integers(DType::boolean, x, 0, 1, 1))},
                                      {"y", g.input_of(integers(DType::boolean, y, 0, 1, 2))}}),
                          "cpu.booleans");
    }
    Graph g;
    expect_same_by_bits(g, g.op("logical_not", {{"x", g.input_of(integers(DType::boolean, y, 0, 1, 3))}}), "cpu.not");
  }
}

}  // namespace
}  // namespace moka::devices_test
