// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "base/half.h"
#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Winograd convolutions whose weights the file compresses: they stay small and are transformed in each prediction.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr std::string_view kFiltersKernel = "cpu.conv.winograd";

Tensor random_halves(Graph& g, const Shape& shape) {
  const Tensor wide = g.random(shape);
  Tensor t = *Tensor::zeros(DType::fp16, shape);
  float_to_half(wide.as<float>().data(), static_cast<uint16_t*>(t.mutable_data()), static_cast<size_t>(t.count()));
  return t;
}

struct FilterForm {
  std::string name;
  double bytes;  ///< of a packed weight, at most
  std::function<Value*(Graph&, const Shape&)> make;
};

/// {rows, columns, 1, 1, ...} of the rank of `like`.
Shape blocks_of(const Shape& like, int64_t rows, int64_t columns) {
  Shape s = like;
  for (int i = 0; i < s.rank(); i++) s[i] = i == 0 ? rows : i == 1 ? columns : 1;
  return s;
}

FilterForm integers(DType type, int64_t groups, bool offset, double bytes) {
  return {
      cat(type, " in ", groups, offset ? " with offsets" : ""), bytes, [=](Graph& g, const Shape& shape) {
        const Shape blocks = blocks_of(shape, shape[0], groups);
        std::vector<NamedArg> args{{"data", random_bytes(type, shape, 3)}, {"scale", g.random(blocks, 0.01f, 0.02f)}};
        if (offset) args.emplace_back("offset", g.random(blocks, -3, 3));
        return g.op("constexpr_blockwise_shift_scale", std::move(args));
      }};
}

/// Integers that a program in float16 rounds to float16, times a factor for each output channel, as of a batch norm.
FilterForm rounded_integers(DType type, int64_t groups, bool factors, double bytes) {
  return {cat(type, " rounded to float16", factors ? ", with factors" : ""), bytes, [=](Graph& g, const Shape& shape) {
            const Shape blocks = blocks_of(shape, shape[0], groups);
            Value* w = g.op("constexpr_blockwise_shift_scale",
                            {{"data", random_bytes(type, shape, 3)}, {"scale", random_halves(g, blocks)}});
            w = g.op("constexpr_cast", {{"source_val", w}, {"output_dtype", "fp32"}});
            if (!factors) return w;
            Tensor by_output = *Tensor::zeros(DType::fp64, {shape[0]});
            for (int64_t i = 0; i < shape[0]; i++)
              by_output.mut<double>()[static_cast<size_t>(i)] = 0.5 + 0.25 * (i % 7);
            return g.op("moka_scale_weights", {{"weight", w},
                                               {"input_scale", Tensor::scalar(DType::fp64, 1).reshaped({1})},
                                               {"output_scale", by_output},
                                               {"groups", 1},
                                               {"transposed", false}});
          }};
}

FilterForm palette_of(DType type, int64_t groups, double bytes, bool scale = false) {
  return {cat(type, " palettes of ", groups, scale ? " with scales" : ""), bytes, [=](Graph& g, const Shape& shape) {
            Shape tables = blocks_of(shape, groups, 1);
            tables.push_back(int64_t{1} << bits(type));
            tables.push_back(1);
            Tensor table = g.random(tables);
            for (float& v : table.mut<float>()) v = static_cast<float>(half(v));
            Value* w = g.op("constexpr_lut_to_dense", {{"indices", random_bytes(type, shape, 5)}, {"lut", table}});
            if (!scale) return w;
            return g.op("constexpr_blockwise_shift_scale",
                        {{"data", w}, {"scale", g.random(blocks_of(shape, shape[0], 1), 0.5f, 2)}});
          }};
}

/// A table for each weight of a filter, which all filters share.
FilterForm row_palettes(DType type, double bytes) {
  return {
      cat(type, " palettes of rows"), bytes, [=](Graph& g, const Shape& shape) {
        Shape tables = shape;
        tables[0] = 1;
        tables.push_back(int64_t{1} << bits(type));
        tables.push_back(1);
        return g.op("constexpr_lut_to_dense", {{"indices", random_bytes(type, shape, 5)}, {"lut", g.random(tables)}});
      }};
}

/// About one of `each` weights is not zero.
FilterForm sparse_filters(int64_t each, double bytes) {
  return {cat("sparse ", each), bytes, [=](Graph& g, const Shape& shape) {
            Tensor mask = *Tensor::zeros(DType::uint1, shape);
            std::mt19937 draw(11);
            int64_t set = 0;
            for (int64_t i = 0; i < mask.count(); i++) {
              const bool there = draw() % static_cast<unsigned>(each) == 0;
              store_i64(mask.view(), i, there);
              set += there;
            }
            Value* w = g.op("constexpr_sparse_to_dense", {{"nonzero_data", random_halves(g, {set})}, {"mask", mask}});
            return g.op("constexpr_cast", {{"source_val", w}, {"output_dtype", "fp32"}});
          }};
}

std::vector<FilterForm> filter_forms() {
  return {integers(DType::int8, 1, false, 1.02),
          integers(DType::uint8, 1, true, 1.04),
          integers(DType::int4, 4, false, 0.6),
          rounded_integers(DType::int8, 1, false, 1.02),
          rounded_integers(DType::int4, 4, true, 0.6),
          palette_of(DType::uint4, 1, 0.51),
          palette_of(DType::uint3, 3, 0.51),
          palette_of(DType::uint2, 1, 0.26),
          palette_of(DType::uint1, 1, 0.14),
          palette_of(DType::uint4, 1, 0.53, true),
          row_palettes(DType::uint4, 1.9),
          palette_of(DType::uint6, 1, 2),
          sparse_filters(4, 0.8),
          sparse_filters(1, 2)};
}

struct FilterCase {
  int64_t in, out;
  std::vector<int64_t> size, taps;
  int64_t stride = 1, groups = 1;
};

const FilterCase kFilterCases[] = {
    {48, 48, {20, 20}, {3, 3}}, {64, 96, {7, 7}, {3, 3}},   {528, 48, {9, 11}, {3, 3}}, {48, 96, {41, 30}, {3, 3}, 2},
    {48, 48, {9, 40}, {1, 7}},  {48, 48, {17, 17}, {5, 5}}, {64, 48, {40}, {5}},        {32, 48, {5, 9, 9}, {3, 3, 3}}};

Value* convolution(Graph& g, Value* x, Value* weight, const FilterCase& c) {
  std::vector<int64_t> pad, strides(c.taps.size(), c.stride);
  for (int64_t taps : c.taps) pad.insert(pad.end(), 2, taps % 2 == 0 ? 0 : taps / 2);
  return g.op("conv", {{"x", x},
                       {"weight", weight},
                       {"bias", g.random({c.out})},
                       {"groups", static_cast<int>(c.groups)},
                       {"strides", Tensor::i32(strides)},
                       {"pad_type", "custom"},
                       {"pad", Tensor::i32(pad)}});
}

TEST(CompressedFilters, EveryFormStaysSmall) {
  const bool widens = devices::cpu::isa() != devices::cpu::Isa::base;
  for (const FilterForm& form : filter_forms())
    for (const FilterCase& c : kFilterCases) {
      SCOPED_TRACE(cat(form.name, ": ", c.in, " to ", c.out, ", ", c.size[0], ", ", c.taps[0], " by ", c.stride));
      Graph g(Opset::ios18);
      const Shape shape = shape_of(c.out, c.in, c.taps);
      Value* y = convolution(g, g.input(shape_of(2, c.in, c.size)), form.make(g, shape), c);
      ASSERT_NE(y, nullptr);
      const auto got = expect_same_by(kFiltersKernel, g, y);
      ASSERT_NE(got.constants, nullptr);
      const double most = form.bytes * static_cast<double>(shape.count()) + 64;
      if (widens) {
        EXPECT_LE(static_cast<double>(got.constants->packed_bytes()), most);
      }
      EXPECT_EQ(got.has("packed as"), widens) << got.kernels;
    }
}

TEST(CompressedFilters, ThreadsGiveTheSameBits) {
  for (const FilterForm& form : filter_forms()) {
    Graph g(Opset::ios18);
    const FilterCase c{80, 96, {40, 40}, {3, 3}};
    Value* y = convolution(g, g.input({1, c.in, 40, 40}), form.make(g, {c.out, c.in, 3, 3}), c);
    expect_same_bits(g, y, kFiltersKernel, form.name);
  }
}

/// Their transform rounds to float32. ErrorIsNearThatOfDirectSums of Winograd has the same bounds.
TEST(CompressedFilters, ErrorIsNearThatOfDirectSums) {
  struct Bound {
    FilterCase c;
    double largest, rms;
  };
  const Bound bounds[] = {{{64, 32, {28, 28}, {3, 3}}, 3e-6, 4e-7},  {{512, 32, {28, 28}, {3, 3}}, 7e-6, 1e-6},
                          {{512, 32, {7, 7}, {3, 3}}, 7e-6, 1e-6},   {{192, 32, {56, 56}, {3, 3}, 2}, 3e-6, 4e-7},
                          {{192, 32, {40, 40}, {1, 5}}, 4e-6, 6e-7}, {{192, 32, {17, 17}, {7, 1}}, 6e-6, 8e-7}};
  for (const FilterForm& form : filter_forms())
    for (const Bound& b : bounds) {
      if (form.name == "uint3 palettes of 3") continue;  // needs 48 channels
      SCOPED_TRACE(cat(form.name, ": ", b.c.in, " channels, ", b.c.size[0]));
      Graph g(Opset::ios18);
      const Shape shape = shape_of(b.c.out, b.c.in, b.c.taps);
      Value* y = convolution(g, g.input(shape_of(1, b.c.in, b.c.size)), form.make(g, shape), b.c);
      const auto got = expect_same_by(kFiltersKernel, g, y);
      expect_error_below(g, got, b.largest, b.rms);
    }
}

/// The weights as a constant of float32.
Tensor expanded(const FilterForm& form, const Shape& shape) {
  Graph g(Opset::ios18);
  g.function().body().set_outputs({form.make(g, shape)});
  const auto got = run(g.function(), {}, false);
  return got.ok() ? got->outputs[0] : Tensor();
}

/// Direct convolutions keep codes and masks, too, and give the bits of float32 weights.
TEST(CompressedFilters, DirectSumsKeepBits) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "needs vectors that widen bytes fast";
  const FilterForm forms[] = {sparse_filters(3, 0.9),
                              integers(DType::int8, 1, false, 1.1),
                              integers(DType::uint8, 1, true, 1.1),
                              integers(DType::int4, 2, false, 0.6),
                              rounded_integers(DType::int8, 1, false, 1.1),
                              rounded_integers(DType::int4, 2, true, 0.6),
                              integers(DType::uint4, 1, true, 0.6),
                              palette_of(DType::uint4, 1, 0.6),
                              palette_of(DType::uint3, 3, 0.6),
                              palette_of(DType::uint2, 1, 0.3),
                              palette_of(DType::uint4, 1, 0.6, true),
                              row_palettes(DType::uint4, 1.9)};
  const FilterCase cases[] = {{64, 96, {15, 15}, {2, 2}, 2},  {128, 96, {14, 14}, {3, 3}, 2, 2},
                              {96, 120, {9, 31}, {1, 2}, 2},  {96, 144, {9, 31}, {2, 2}, 2},
                              {64, 72, {31, 31}, {4, 4}, 4},  {1088, 48, {13, 13}, {2, 2}, 2},
                              {3, 48, {64, 64}, {16, 16}, 16}};
  for (const FilterForm& form : forms)
    for (const FilterCase& c : cases)
      for (int threads : {1, 2}) {
        SCOPED_TRACE(cat(form.name, ": ", c.in, " to ", c.out, ", ", c.size[0], ", ", threads, " threads"));
        if (c.in == 3 && form.name.starts_with("int4")) continue;             // needs an even number of channels
        if (c.out % 48 != 0 && form.name == "uint3 palettes of 3") continue;  // tables that share a vector
        const Shape shape = shape_of(c.out, c.in / c.groups, c.taps);
        devices_test::Run runs[2];
        for (const bool is_stored : {false, true}) {
          Graph g(Opset::ios18);
          Value* w = form.make(g, shape);  // in both graphs, so that the other numbers are the same
          if (!is_stored) w = g.constant(expanded(form, shape));
          Value* y = convolution(g, g.input(shape_of(2, c.in, c.size)), w, c);
          ASSERT_NE(y, nullptr);
          y = g.op("tanh", {{"x", y}});  // results in blocks of channels
          g.function().body().set_outputs({y});
          auto got = run(g.function(), g.inputs(), true, threads, 2);
          ASSERT_TRUE(got.ok()) << got.error().to_string();
          runs[is_stored] = std::move(*got);
        }
        const bool sparse = form.name.starts_with("sparse");
        EXPECT_TRUE(runs[1].has(cat("cpu.conv.dense(packed as ", sparse ? "mask" : "integers"))) << runs[1].kernels;
        EXPECT_TRUE(runs[0].has("cpu.conv.dense")) << runs[0].kernels;
        EXPECT_LE(static_cast<double>(runs[1].constants->packed_bytes()),
                  form.bytes / 4 * static_cast<double>(runs[0].constants->packed_bytes()));
        EXPECT_EQ(std::memcmp(runs[0].outputs[0].data(), runs[1].outputs[0].data(), runs[0].outputs[0].bytes()), 0);
      }
}

/// Matrix products and convolutions of 1 x 1 keep masks, and codes of few bits.
TEST(CompressedFilters, ProductsKeepBits) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "needs instructions that convert float16";
  struct Case {
    int64_t rows, depth, made;
    bool image;
  };
  const Case cases[] = {{70, 704, 96, false},  {9, 1030, 130, false}, {200, 768, 770, false}, {320, 770, 512, false},
                        {49, 325, 72, true},   {300, 96, 112, true},  {25, 33, 24, true},     {1, 64, 48, true},
                        {1500, 160, 40, true}, {60, 45, 200, true}};
  const FilterForm forms[] = {
      sparse_filters(4, 0.8),           palette_of(DType::uint4, 1, 0.6),    palette_of(DType::uint2, 1, 0.3),
      palette_of(DType::uint1, 1, 0.2), integers(DType::int4, 1, true, 0.6), palette_of(DType::uint3, 1, 0.6, true)};
  for (const FilterForm& form : forms)
    for (const Case& c : cases)
      for (int threads : {1, 2}) {
        SCOPED_TRACE(cat(form.name, ": ", c.rows, " x ", c.depth, " x ", c.made, ", ", threads));
        const Shape shape = shape_of(c.made, c.depth, c.image ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{});
        devices_test::Run runs[2];
        for (const bool is_stored : {false, true}) {
          Graph g(Opset::ios18);
          Value* w = form.make(g, shape);
          if (!is_stored) w = g.constant(expanded(form, shape));
          Value* x = g.input(c.image ? Shape{1, c.depth, c.rows, 1} : Shape{c.rows, c.depth});
          Value* y = c.image ? g.op("tanh", {{"x", g.op("conv", {{"x", x}, {"weight", w}})}})  // results in blocks
                             : g.op("linear", {{"x", x}, {"weight", w}});
          ASSERT_NE(y, nullptr);
          g.function().body().set_outputs({y});
          auto got = run(g.function(), g.inputs(), true, threads, 2);
          ASSERT_TRUE(got.ok()) << got.error().to_string();
          runs[is_stored] = std::move(*got);
        }
        EXPECT_TRUE(runs[1].has(form.name.starts_with("sparse") ? "packed as mask" : "packed as integers"))
            << runs[1].kernels;
        EXPECT_LE(10 * runs[1].constants->packed_bytes(), 3 * runs[0].constants->packed_bytes());
        EXPECT_EQ(std::memcmp(runs[0].outputs[0].data(), runs[1].outputs[0].data(), runs[0].outputs[0].bytes()), 0);
      }
}

/// Results that see an infinity are summed directly, with the weights of the file or those that are packed.
TEST(CompressedFilters, OddInputs) {
  for (const FilterForm& form : filter_forms()) {
    SCOPED_TRACE(form.name);
    Graph g(Opset::ios18);
    const FilterCase c{48, 48, {20, 20}, {3, 3}};
    Tensor x = g.random({1, c.in, 20, 20});
    x.mut<float>()[20 * 9 + 8] = std::numeric_limits<float>::infinity();
    Value* y = convolution(g, g.input_of(x), form.make(g, {c.out, c.in, 3, 3}), c);
    const auto got = expect_same_by(kFiltersKernel, g, y);
    int64_t odd = 0;
    for (float v : got.outputs[0].as<float>()) odd += !std::isfinite(v);
    EXPECT_EQ(odd, c.out * 9);
  }
}

}  // namespace
}  // namespace moka::devices_test
