// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/int8.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Products of quantized activations and 8-bit weights. Sums of integers are exact, so only the scale is rounded.
namespace moka::devices_test {
namespace {

using namespace ir;
using devices::cpu::vector::Int8Gemm;
using devices::cpu::vector::Int8Scaling;

bool has_bytes() { return devices::cpu::vector::int8_gemm() != nullptr; }
/// Sums of floats have the tolerance of their own tests.
double bound() { return has_bytes() ? 1e-6 : 1e-5; }
struct Input {
  const char* dtype = "int8";
  int zero = 0;
};

/// Quantizes values of which some are outside of the 8-bit range.
Value* quantized(Graph& g, const Shape& shape, const Input& in = {}) {
  return g.op(
      "moka_fake_quantize",
      {{"x", g.input(shape, -4, 4)}, {"scale", 0.0237f}, {"zero_point", in.zero}, {"dtype", std::string(in.dtype)}});
}

/// Weights with a scale per entry of `axis`, and with offsets unless their type is fp64.
Value* weights(Graph& g, const Shape& shape, DType dtype = DType::int8, int axis = 0, float offset = 0) {
  Shape groups = shape;
  for (int i = 0; i < groups.rank(); i++) groups[i] = i == axis ? shape[i] : 1;
  std::vector<NamedArg> args{{"data", random_bytes(dtype, shape, 5)}, {"scale", g.random(groups, 0.001f, 0.02f)}};
  if (offset != 0) args.emplace_back("offset", g.random(groups, offset, offset));
  return g.op("constexpr_blockwise_shift_scale", args);
}

TEST(Int8, SumsOfEverySize) {
  std::vector<const Int8Gemm*> sets;
#if defined(__x86_64__)
  if (devices::cpu::isa() == devices::cpu::Isa::avx512 && has_bytes())
    sets.push_back(&devices::cpu::vector::int8_gemm_avx512vnni());
  if (devices::cpu::isa() == devices::cpu::Isa::avx2 && has_bytes())
    sets.push_back(&devices::cpu::vector::int8_gemm_avxvnni());
#endif
  std::mt19937 draw(3);
  for (const Int8Gemm* b : sets)
    for (int64_t rows = 1; rows <= b->rows; rows++)
      for (int64_t columns = 1; columns <= b->panel; columns += 3)
        for (int64_t quads : {1, 2, 7}) {
          constexpr int64_t kTaps = 3;
          const int64_t padded = (columns + b->lanes - 1) / b->lanes * b->lanes;
          std::vector<uint8_t> a(static_cast<size_t>(kTaps * rows * quads * 4));
          std::vector<int8_t> w(static_cast<size_t>(kTaps * quads * padded * 4));
          for (auto& v : a) v = static_cast<uint8_t>(draw() % 3 == 0 ? 255 : draw());
          for (auto& v : w) v = static_cast<int8_t>(draw() % 3 == 0 ? -128 : draw());
          std::vector<int32_t> first(static_cast<size_t>(padded));
          std::vector<float> scale(first.size()), shift(first.size());
          for (size_t i = 0; i < first.size(); i++) {
            first[i] = static_cast<int32_t>(draw() % 1000) - 500;
            scale[i] = static_cast<float>(i + 1) / 64;
            shift[i] = static_cast<float>(i);
          }
          std::vector<const uint8_t*> from;
          for (int64_t i = 0; i < kTaps * rows; i++) from.push_back(a.data() + i * quads * 4);
          const int64_t step = columns + 2;
          std::vector<float> c(static_cast<size_t>(rows * step), -1);
          b->multiply(from.data(), rows, kTaps, quads, w.data(), columns, true,
                      Int8Scaling{first.data(), scale.data(), shift.data()}, c.data(), step, b->lanes);
          for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < step; j++) {
              const auto at = static_cast<size_t>(i * step + j);
              if (j >= columns) {
                ASSERT_EQ(c[at], -1) << "row " << i << ", column " << j << " of " << columns;
                continue;
              }
              int32_t sum = first[static_cast<size_t>(j)];
              for (int64_t t = 0; t < kTaps; t++)
                for (int64_t k = 0; k < quads * 4; k++)
                  sum += from[static_cast<size_t>(t * rows + i)][k] *
                         w[static_cast<size_t>((((t * quads + k / 4) * padded) + j) * 4 + k % 4)];
              // Both factors are exact.
              ASSERT_EQ(c[at], static_cast<float>(sum) * scale[static_cast<size_t>(j)] + shift[static_cast<size_t>(j)])
                  << rows << " rows, row " << i << ", column " << j << " of " << columns;
            }
        }
}

TEST(Int8, FakeQuantize) {
  for (Input in : {Input{"int8", 0}, {"int8", -128}, {"int8", 127}, {"uint8", 0}, {"uint8", 128}, {"uint8", 255}}) {
    SCOPED_TRACE(cat(in.dtype, " ", in.zero));
    Graph g;
    Tensor x = g.random({3, 501}, -6, 6);
    auto v = x.mut<float>();
    for (size_t i = 0; i < 400; i++) v[i] = (static_cast<float>(i) - 200.0f) * 0.5f * 0.25f;  // also halves
    v[410] = NAN;
    v[411] = INFINITY;
    v[412] = -INFINITY;
    v[413] = -0.0f;
    Value* from = g.input_of(x);
    Value* y = g.op("moka_fake_quantize",
                    {{"x", from}, {"scale", 0.25f}, {"zero_point", in.zero}, {"dtype", std::string(in.dtype)}});
    const Tensor zero = *Tensor::zeros(dtype_from_string(in.dtype), {});
    store_i64(zero.view(), 0, in.zero);
    Value* q = g.op("quantize", {{"input", from}, {"scale", 0.25f}, {"zero_point", zero}, {"output_dtype", in.dtype}});
    Value* d = g.op("dequantize", {{"input", q}, {"scale", 0.25f}, {"zero_point", zero}});
    g.function().body().set_outputs({y, q, d});
    auto cpu = run(g.function(), g.inputs(), true), reference = run(g.function(), g.inputs(), false);
    ASSERT_TRUE(cpu.ok() && reference.ok());
    EXPECT_EQ(cpu->kernels, "cpu.unary cpu.quantize cpu.dequantize");
    for (size_t i = 0; i < 3; i++) EXPECT_EQ(cpu->outputs[i], reference->outputs[i]) << i;
    EXPECT_EQ(cpu->outputs[0], cpu->outputs[2]);
  }
}

TEST(Int8, ScalesOfAnAxis) {
  for (int axis : {0, 1, 2, -1}) {
    SCOPED_TRACE(axis);
    Graph g;
    const Shape shape{5, 7, 1200};
    const int64_t n = shape[axis < 0 ? 2 : axis];
    const Tensor scale = g.random({n}, 0.01f, 0.1f), zero = random_bytes(DType::int8, {n}, 4);
    Value* q = g.op("quantize", {{"input", g.input(shape, -4, 4)},
                                 {"scale", scale},
                                 {"zero_point", zero},
                                 {"axis", axis},
                                 {"output_dtype", "int8"}});
    Value* d = g.op("dequantize", {{"input", q}, {"scale", scale}, {"zero_point", zero}, {"axis", axis}});
    expect_same(g, {q, d}, 0);
  }
}

TEST(Int8, Products) {
  for (int64_t rows : {1, 3, 12, 13, 40})
    for (auto [made, depth] : {std::pair<int64_t, int64_t>{1, 1}, {16, 4}, {33, 35}, {64, 128}, {7, 1030}})
      for (Input in : {Input{"int8", 0}, {"int8", -128}, {"uint8", 0}, {"uint8", 131}}) {
        SCOPED_TRACE(cat(rows, " x ", depth, " x ", made, " ", in.dtype, " ", in.zero));
        Graph g(Opset::ios18);
        Value* x = quantized(g, {rows, depth}, in);
        Value* y = g.op("linear", {{"x", x}, {"weight", weights(g, {made, depth})}, {"bias", g.random({made})}});
        Value* stack = g.op("expand_dims", {{"x", x}, {"axes", Tensor::i32({0})}});
        Value* z = g.op("matmul", {{"x", stack}, {"y", weights(g, {depth, made}, DType::int8, 1)}});
        Value* t = g.op("matmul", {{"x", x}, {"y", weights(g, {made, depth})}, {"transpose_y", true}});
        const auto r = expect_same(g, {y, z, t}, bound());
        EXPECT_EQ(r.has("cpu.linear.int8"), has_bytes()) << r.kernels;
        EXPECT_EQ(r.has("cpu.matmul.int8"), has_bytes()) << r.kernels;
      }
}

TEST(Int8, KindsOfWeights) {
  struct Kind {
    DType dtype;
    float offset;
    bool fits;  ///< whether weight - offset fits into 8 bits
  };
  const Kind kinds[] = {
      {.dtype = DType::int8, .offset = 0, .fits = true},   {.dtype = DType::int4, .offset = 0, .fits = true},
      {.dtype = DType::uint4, .offset = 8, .fits = true},  {.dtype = DType::uint8, .offset = 128, .fits = true},
      {.dtype = DType::uint8, .offset = 0, .fits = false}, {.dtype = DType::int8, .offset = 3, .fits = false},
  };
  for (auto [dtype, offset, fits] : kinds) {
    SCOPED_TRACE(cat(dtype, " less ", offset));
    Graph g(Opset::ios18);
    Value* x = quantized(g, {9, 64});
    const auto r =
        expect_same(g, {g.op("linear", {{"x", x}, {"weight", weights(g, {40, 64}, dtype, 0, offset)}})}, bound());
    EXPECT_EQ(r.has("cpu.linear.int8"), fits && has_bytes()) << r.kernels;
  }
}

/// Products that integers cannot represent, or whose sums might overflow 32 bits, stay in float.
TEST(Int8, Refusals) {
  Graph g(Opset::ios18);
  Value* x = quantized(g, {9, 64});
  Value* blocks = g.op("constexpr_blockwise_shift_scale",
                       {{"data", random_bytes(DType::int8, {8, 64}, 5)}, {"scale", g.random({8, 2}, 0.001f, 0.02f)}});
  Value* floats = g.input({9, 64});
  Value* deep = quantized(g, {5, 65796});
  const auto r = expect_same(
      g,
      {g.op("linear", {{"x", x}, {"weight", blocks}}), g.op("linear", {{"x", floats}, {"weight", weights(g, {8, 64})}}),
       g.op("linear", {{"x", x}, {"weight", g.random({8, 64})}}),
       g.op("linear", {{"x", deep}, {"weight", weights(g, {2, 65796})}})},
      1e-5);
  EXPECT_FALSE(r.has("bytes")) << r.kernels;
}

struct Window {
  Shape kernel;
  std::vector<int64_t> strides, pad, dilations;
};

TEST(Int8, Convolutions) {
  const Window windows[] = {
      {.kernel = {1, 1}, .strides = {1, 1}, .pad = {0, 0, 0, 0}, .dilations = {1, 1}},
      {.kernel = {1, 1}, .strides = {2, 3}, .pad = {0, 0, 0, 0}, .dilations = {1, 1}},
      {.kernel = {3, 3}, .strides = {1, 1}, .pad = {1, 1, 1, 1}, .dilations = {1, 1}},
      {.kernel = {3, 2}, .strides = {2, 1}, .pad = {2, 0, 1, 3}, .dilations = {2, 1}},
      {.kernel = {5, 7}, .strides = {1, 2}, .pad = {3, 3, 3, 3}, .dilations = {1, 1}},
  };
  for (const Window& w : windows)
    for (auto [in, out] : {std::pair<int64_t, int64_t>{24, 16}, {64, 40}, {33, 70}})
      for (Input input : {Input{"int8", 0}, {"int8", 5}, {"uint8", 131}}) {
        SCOPED_TRACE(cat(w.kernel, " ", in, " to ", out, " ", input.dtype, " ", input.zero));
        Graph g(Opset::ios18);
        Value* y = g.op("conv", {{"x", quantized(g, {2, in, 11, 9}, input)},
                                 {"weight", weights(g, {out, in, w.kernel[0], w.kernel[1]})},
                                 {"bias", g.random({out})},
                                 {"strides", Tensor::i32(w.strides)},
                                 {"dilations", Tensor::i32(w.dilations)},
                                 {"pad_type", "custom"},
                                 {"pad", Tensor::i32(w.pad)}});
        const auto r = expect_same(g, {y}, bound());
        EXPECT_EQ(r.has("cpu.conv.int8"), has_bytes()) << r.kernels;
      }
}

TEST(Int8, OneAndThreeDimensions) {
  Graph g(Opset::ios18);
  Value* a =
      g.op("conv", {{"x", quantized(g, {2, 20, 50})}, {"weight", weights(g, {33, 20, 5})}, {"pad_type", "same"}});
  Value* b = g.op(
      "conv",
      {{"x", quantized(g, {1, 16, 5, 6, 7})}, {"weight", weights(g, {18, 16, 3, 1, 3})}, {"pad_type", "same_lower"}});
  const auto r = expect_same(g, {a, b}, bound());
  EXPECT_EQ(r.has("cpu.conv.int8"), has_bytes()) << r.kernels;
}

TEST(Int8, EpiloguesAddendsAndThreads) {
  for (int64_t out : {32, 45}) {
    Graph g(Opset::ios18);
    Value* x = quantized(g, {1, 64, 30, 31});
    Value* more =
        g.op("conv", {{"x", g.input({1, 8, 30, 31})}, {"weight", g.random({out, 8, 1, 1})}, {"pad_type", "valid"}});
    Value* y =
        g.op("conv", {{"x", x}, {"weight", weights(g, {out, 64, 3, 3})}, {"pad_type", "same"}, {"addend", more}});
    y->producer()->epilogue = {{"relu"}, {"linear_activation", 0.5f, 0.25f}};
    Value* again = g.op(
        "conv", {{"x", g.op("moka_fake_quantize", {{"x", y}, {"scale", 0.05f}, {"zero_point", 7}, {"dtype", "uint8"}})},
                 {"weight", weights(g, {24, out, 1, 1})},
                 {"pad_type", "valid"}});
    Value* rows = g.op(
        "linear", {{"x", quantized(g, {37, 64})}, {"weight", weights(g, {out, 64})}, {"addend", g.input({37, out})}});
    rows->producer()->epilogue = {{"sigmoid"}};
    Value* columns =
        g.op("matmul", {{"x", quantized(g, {37, 64})}, {"y", weights(g, {64, out})}, {"bias", g.random({out})}});
    g.function().body().set_outputs({y, again, rows, columns});
    auto one = run(g.function(), g.inputs(), true, 1, 2), two = run(g.function(), g.inputs(), true, 2, 2);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(one->has("cpu.conv.int8"), has_bytes()) << one->kernels;
    for (size_t i = 0; i < 4; i++) EXPECT_EQ(one->outputs[i], two->outputs[i]) << i;
    // Values that are quantized again may round to the other side of a half.
    expect_same(g, {y, rows, columns}, bound());
  }
}

}  // namespace
}  // namespace moka::devices_test
