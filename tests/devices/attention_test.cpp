// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "base/half.h"
#include "devices/graph_util.h"

namespace moka::devices_test {
namespace {

using namespace ir;

TEST(CpuAttention, MasksAndBroadcasts) {
  for (int kind : {0, 1, 2, 3}) {
    SCOPED_TRACE(kind);
    Graph g(Opset::ios18);
    Value* q = g.input({2, 3, 70, 16});
    Value* k = g.input({kind == 1 ? 1 : 2, 3, 45, 16});
    Value* v = g.input({2, kind == 1 ? 1 : 3, 45, 24});
    std::vector<NamedArg> args{{"query", q}, {"key", k}, {"value", v}};
    if (kind == 1) args.emplace_back("attn_mask", g.input({70, 45}));
    if (kind == 2) args.emplace_back("attn_mask", g.op("less", {{"x", g.input({2, 1, 70, 45})}, {"y", 0.9f}}));
    if (kind == 3) args.emplace_back("attn_mask", g.input({2, 3, 70, 1}));
    expect_same(g, {g.op("scaled_dot_product_attention", args)});
  }
  Graph g(Opset::ios18);
  expect_same(
      g, {g.op("scaled_dot_product_attention",
               {{"query", g.input({4, 1, 16})}, {"key", g.input({4, 300, 16})}, {"value", g.input({4, 300, 8})}})});
}

/// Heads are side by side in one tensor. There are as many keys as in a block, fewer and more.
TEST(CpuAttention, HeadsInPlace) {
  for (int64_t rows : {1, 3, 5, 29, 70})
    for (int64_t keys : {1, 9, 255, 256, 257, 530})
      for (int64_t width : {1, 8, 33, 64}) {
        SCOPED_TRACE(cat(rows, " ", keys, " ", width));
        Graph g;
        const int64_t heads = 3, made = width == 8 ? 13 : width, in = heads * width, both = in + heads * made;
        Value* q = g.input({2, rows, in}, -2, 2);
        Value* kv = g.input({2, keys, both}, -2, 2);
        Value* mask = g.input({2, 1, rows, keys});
        auto attention = [&](bool rows_first, bool masked) {
          std::vector<NamedArg> args{{"query", q},
                                     {"key", kv},
                                     {"value", kv},
                                     {"sizes", Tensor::i32({2, heads, rows, keys, width, made})},
                                     {"query_steps", Tensor::i32({0, rows * in, width, in, 1})},
                                     {"key_steps", Tensor::i32({0, keys * both, width, both, 1})},
                                     {"value_steps", Tensor::i32({in, keys * both, made, both, 1})},
                                     {"scale", 0.7f},
                                     {"rows_first", rows_first}};
          if (masked) args.emplace_back("attn_mask", mask);
          return g.op("moka_attention", args);
        };
        expect_same(g, {attention(true, true), attention(false, false)});
      }
}

/// Columns of keys, values and queries are rows of their tensors, as after a transpose.
TEST(CpuAttention, Transposed) {
  for (int64_t rows : {2, 40}) {
    Graph g;
    const int64_t keys = 300, width = 16;
    expect_same(g, {g.op("moka_attention", {{"query", g.input({width, rows})},
                                            {"key", g.input({width, keys})},
                                            {"value", g.input({width, keys})},
                                            {"sizes", Tensor::i32({1, 1, rows, keys, width, width})},
                                            {"query_steps", Tensor::i32({0, 0, 0, 1, rows})},
                                            {"key_steps", Tensor::i32({0, 0, 0, 1, keys})},
                                            {"value_steps", Tensor::i32({0, 0, 0, 1, keys})},
                                            {"scale", 0.25f},
                                            {"rows_first", true}})});
  }
}

/// Keys and values are in float16: dense, with gaps between rows, and with columns first.
TEST(CpuAttention, Halves) {
  for (int64_t rows : {1, 4, 5, 70})
    for (int64_t keys : {1, 63, 130, 600})
      for (const bool transposed : {false, true})
        for (const int64_t spare : {0, 3}) {
          SCOPED_TRACE(cat(rows, " ", keys, transposed ? " transposed" : "", " ", spare));
          Graph g;
          const int64_t heads = 2, width = 24, made = 17, row = width + spare;
          auto halves = [&](const Shape& s) {
            const Tensor wide = g.random(s, -2, 2);
            Tensor t = *Tensor::zeros(DType::fp16, s);
            float_to_half(wide.as<float>().data(), static_cast<uint16_t*>(t.mutable_data()),
                          static_cast<size_t>(t.count()));
            return g.input_of(t);
          };
          Value* k = halves(transposed ? Shape{heads, width, keys + spare} : Shape{heads, keys, row});
          const Tensor key_steps = transposed ? Tensor::i32({0, 0, width * (keys + spare), 1, keys + spare})
                                              : Tensor::i32({spare, 0, keys * row, row, 1});
          Value* v = halves({heads, keys, made});
          expect_same(g, {g.op("moka_attention", {{"query", g.input({heads, rows, width})},
                                                  {"key", k},
                                                  {"value", v},
                                                  {"sizes", Tensor::i32({1, heads, rows, keys, width, made})},
                                                  {"query_steps", Tensor::i32({0, 0, rows * width, width, 1})},
                                                  {"key_steps", key_steps},
                                                  {"value_steps", Tensor::i32({0, 0, keys * made, made, 1})},
                                                  {"scale", 0.25f},
                                                  {"rows_first", true}})});
        }
}

/// Rows in which all keys are masked are NaN. Whole blocks of masked keys have no weight.
TEST(CpuAttention, MasksOfWholeBlocks) {
  const float nothing = -std::numeric_limits<float>::infinity();
  for (int64_t rows : {2, 33}) {
    Graph g(Opset::ios18);
    const int64_t keys = 700;
    std::vector<float> mask(static_cast<size_t>(rows * keys), 0.0f);
    auto hide = [&](int64_t row, int64_t from, int64_t to) {
      std::fill(mask.begin() + row * keys + from, mask.begin() + row * keys + to, nothing);
    };
    hide(0, 0, 600);
    hide(1, 0, keys);
    for (int64_t i = 2; i < rows; i++) hide(i, i * 20, keys);
    expect_same(g, {g.op("scaled_dot_product_attention", {{"query", g.input({2, rows, 16}, -9, 9)},
                                                          {"key", g.input({2, keys, 16}, -9, 9)},
                                                          {"value", g.input({2, keys, 8})},
                                                          {"attn_mask", Tensor::f32({rows, keys}, mask)}})});
  }
}

/// Maxima that grow from block to block, infinities and NaN.
TEST(CpuAttention, LargeAndInfiniteScores) {
  for (int64_t rows : {2, 20}) {
    Graph g(Opset::ios18);
    const int64_t keys = 600;
    Tensor k = g.random({1, keys, 8}, 0.5f, 1);
    for (int64_t i = 0; i < k.count(); i++)
      store_f64(k.view(), i, load_f64(k.view(), i) * (1 + static_cast<double>(i) / 800));
    Tensor bad = g.random({1, keys, 8});
    store_f64(bad.view(), 300 * 8, std::numeric_limits<double>::infinity());
    Value* q = g.input({1, rows, 8}, 0.5f, 1);
    Value* v = g.input({1, keys, 8});
    expect_same(g, {g.op("scaled_dot_product_attention", {{"query", q}, {"key", g.input_of(k)}, {"value", v}}),
                    g.op("scaled_dot_product_attention", {{"query", q}, {"key", g.input_of(bad)}, {"value", v}})});
  }
}

TEST(CpuAttention, SameForAnyNumberOfThreads) {
  Graph g(Opset::ios18);
  Value* y = g.op(
      "scaled_dot_product_attention",
      {{"query", g.input({1, 2, 333, 24})}, {"key", g.input({1, 2, 333, 24})}, {"value", g.input({1, 2, 333, 24})}});
  g.function().body().set_outputs({y});
  auto one = run(g.function(), g.inputs(), true, 1), two = run(g.function(), g.inputs(), true, 3);
  ASSERT_TRUE(one.ok() && two.ok());
  const auto a = one->outputs[0].as<float>(), b = two->outputs[0].as<float>();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

}  // namespace
}  // namespace moka::devices_test
