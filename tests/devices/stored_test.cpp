// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/half.h"
#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Weights that stay as the file stores them (PlanOptions::low_memory), compared with the reference.
namespace moka::devices_test {
namespace {

using namespace ir;

enum class Form {
  fp16,
  int8_rows,
  int8_offset,
  palette4,
  palettes_of_groups,
  int4_blocks,
  fp32,
  scaled_int8,
  scaled_palette,
  network_fp16,
  network_fp32,
  network_int8,
  network_uint8,
  network_palette1,
  network_palette3,
  network_palette4,
  network_palette6,
  network_palette8,
  network_uint4,
};
constexpr Form kForms[] = {Form::fp16,
                           Form::int8_rows,
                           Form::int8_offset,
                           Form::palette4,
                           Form::palettes_of_groups,
                           Form::int4_blocks,
                           Form::fp32,
                           Form::scaled_int8,
                           Form::scaled_palette,
                           Form::network_fp16,
                           Form::network_fp32,
                           Form::network_int8,
                           Form::network_uint8,
                           Form::network_palette1,
                           Form::network_palette3,
                           Form::network_palette4,
                           Form::network_palette6,
                           Form::network_palette8,
                           Form::network_uint4};

Tensor codes(DType type, const Shape& shape) {
  Tensor t = Tensor::zeros(type, shape).value();
  // Without the highest bit of the exponent a float16 is finite.
  for (size_t i = 0; i < t.bytes(); i++)
    t.mut<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + i / 7) & (type == DType::fp16 && i % 2 == 1 ? 0xbbu : 0xffu);
  return t;
}

/// `bytes` at an odd address, as in the file of a neural network.
Tensor unaligned(const Tensor& values) {
  const auto owner = std::make_shared<std::vector<std::byte>>(values.bytes() + 1);
  std::memcpy(owner->data() + 1, values.data(), values.bytes());
  return Tensor::wrap(DType::uint8, Shape{static_cast<int64_t>(values.bytes())},
                      Bytes{{owner->data() + 1, values.bytes()}, owner})
      .value();
}

Value* network_floats(Graph& g, const Tensor& values) {
  return g.op("nn_weight_bytes", {{"data", g.constant(unaligned(values))},
                                  {"shape", Tensor::i32(values.shape().dims())},
                                  {"dtype", std::string(to_string(values.dtype()))}});
}

/// Integers of a neural network: a table if `scale` is false, else a scale for all and a bias for each row.
Value* network_integers(Graph& g, DType type, int bits, const Shape& shape, bool scale) {
  std::vector<NamedArg> args{{"data", g.constant(unaligned(codes(type, Shape{(shape.count() * bits + 7) / 8})))},
                             {"shape", Tensor::i32(shape.dims())},
                             {"bits", bits},
                             {"axis", 0}};
  if (scale) {
    args.emplace_back("scale", g.constant(g.random({1}, 0.01f, 0.02f)));
    args.emplace_back("bias", g.constant(g.random({shape[0]})));
  } else {
    args.emplace_back("lut", g.constant(g.random({int64_t{1} << bits})));
  }
  return g.op("nn_dequantize_weights", args);
}

/// `weight` with a factor for each row, as the pass fold_scale leaves it.
Value* scaled(Graph& g, Value* weight) {
  const int64_t rows = weight->type.shape()[0];
  Tensor one = Tensor::zeros(DType::fp64, {1}).value(), factors = Tensor::zeros(DType::fp64, {rows}).value();
  one.mut<double>()[0] = 1;
  for (int64_t i = 0; i < rows; i++)
    factors.mut<double>()[static_cast<size_t>(i)] = 0.0625 * static_cast<double>(i) - 1;
  return g.op(
      "moka_scale_weights",
      {{"weight", weight}, {"input_scale", one}, {"output_scale", factors}, {"groups", 1}, {"transposed", false}});
}

/// Weights of `shape`, whose second axis is a multiple of 4.
Value* weights(Graph& g, Form form, const Shape& shape) {
  Shape rows = shape, blocks = shape, table{1}, tables{4};
  for (int i = 1; i < shape.rank(); i++) rows[i] = blocks[i] = 1;
  blocks[1] = 4;
  for (int i = 1; i < shape.rank(); i++) {
    table.push_back(1);
    tables.push_back(1);
  }
  for (Shape* t : {&table, &tables}) {
    t->push_back(16);
    t->push_back(1);
  }
  switch (form) {
    case Form::fp16:
      return g.op("constexpr_cast", {{"source_val", g.constant(codes(DType::fp16, shape))}, {"output_dtype", "fp32"}});
    case Form::fp32: return g.constant(g.random(shape));
    case Form::scaled_int8: return scaled(g, weights(g, Form::int8_offset, shape));
    case Form::scaled_palette: return scaled(g, weights(g, Form::palette4, shape));
    case Form::network_fp16: return network_floats(g, codes(DType::fp16, shape));
    case Form::network_fp32: return network_floats(g, g.random(shape));
    case Form::network_int8: return network_integers(g, DType::int8, 8, shape, true);
    case Form::network_uint8: return network_integers(g, DType::uint8, 8, shape, true);
    case Form::network_palette1: return network_integers(g, DType::uint8, 1, shape, false);
    case Form::network_palette3: return network_integers(g, DType::uint8, 3, shape, false);
    case Form::network_palette4: return network_integers(g, DType::uint8, 4, shape, false);
    case Form::network_palette6: return network_integers(g, DType::uint8, 6, shape, false);
    case Form::network_palette8: return network_integers(g, DType::uint8, 8, shape, false);
    case Form::network_uint4: return network_integers(g, DType::uint8, 4, shape, true);
    case Form::palette4:
      return g.op("constexpr_lut_to_dense",
                  {{"indices", g.constant(codes(DType::uint4, shape))}, {"lut", g.constant(g.random(table))}});
    case Form::palettes_of_groups:
      return g.op("constexpr_lut_to_dense",
                  {{"indices", g.constant(codes(DType::uint4, shape))}, {"lut", g.constant(g.random(tables))}});
    case Form::int8_offset:
      return g.op("constexpr_affine_dequantize", {{"quantized_data", g.constant(codes(DType::int8, shape))},
                                                  {"zero_point", g.constant(Tensor::scalar(DType::int8, 3))},
                                                  {"scale", g.constant(g.random({shape[0]}, 0.01f, 0.02f))},
                                                  {"axis", g.constant(Tensor::scalar(DType::int32, 0))}});
    case Form::int8_rows:
      return g.op("constexpr_blockwise_shift_scale", {{"data", g.constant(codes(DType::int8, shape))},
                                                      {"scale", g.constant(g.random(rows, 0.01f, 0.02f))}});
    case Form::int4_blocks:
      return g.op("constexpr_blockwise_shift_scale", {{"data", g.constant(codes(DType::int4, shape))},
                                                      {"scale", g.constant(g.random(blocks, 0.1f, 0.2f))}});
  }
  return nullptr;
}

/// Runs `output` with low_memory, expects `kernel`, nothing packed and the reference's answer.
void expect_stored(Graph& g, Value* output, std::string_view kernel) {
  ASSERT_NE(output, nullptr);
  g.function().body().set_outputs({output});
  for (int threads : {1, 2}) {
    plan::PlanOptions low = options(true, threads);
    low.low_memory = true;
    const auto got = run(g.function(), g.inputs(), low, 2);
    const auto expected = run(g.function(), g.inputs(), false, 1);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    ASSERT_TRUE(expected.ok()) << expected.error().to_string();
    EXPECT_TRUE(got->has(kernel)) << got->kernels;
    EXPECT_EQ(got->constants->packed_bytes(), 0u);
    expect_near(got->outputs[0], expected->outputs[0], 1e-5, std::string(kernel));
  }
}

TEST(Stored, Convolutions) {
  struct Case {
    int64_t in, out, size, taps, stride, dilation;
  };
  const Case cases[] = {{32, 48, 14, 3, 1, 1}, {48, 20, 9, 1, 1, 1},  {20, 36, 15, 3, 2, 1},
                        {64, 40, 7, 5, 1, 1},  {32, 32, 12, 3, 1, 2}, {200, 24, 40, 3, 1, 1}};
  for (Form form : kForms)
    for (const Case& c : cases) {
      SCOPED_TRACE(cat(static_cast<int>(form), ": ", c.in, " to ", c.out, ", ", c.size, ", ", c.taps));
      Graph g(Opset::ios18);
      Value* x = g.input({2, c.in, c.size, c.size});
      Value* y = g.op("conv", {{"x", x},
                               {"weight", weights(g, form, {c.out, c.in, c.taps, c.taps})},
                               {"bias", g.random({c.out})},
                               {"pad_type", "same"},
                               {"strides", Tensor::i32({c.stride, c.stride})},
                               {"dilations", Tensor::i32({c.dilation, c.dilation})}});
      ASSERT_NE(y, nullptr);
      y->producer()->epilogue = {{"relu"}};
      expect_stored(g, y, "cpu.conv.stored");
    }
}

TEST(Stored, Products) {
  for (Form form : kForms)
    for (const int64_t made : {8, 37, 96})
      for (const int64_t rows : {5, 64}) {
        SCOPED_TRACE(cat(static_cast<int>(form), ": ", rows, " to ", made));
        for (bool linear : {true, false}) {
          if (linear && (form == Form::scaled_int8 || form == Form::scaled_palette))
            continue;  // only passes scale them
          Graph g(Opset::ios18);
          Value* x = g.input({rows, 44});
          const int64_t padded = form == Form::palettes_of_groups ? (made + 3) / 4 * 4 : made;
          Value* w = weights(g, form, {padded, 44});
          Value* y = linear ? g.op("linear", {{"x", x}, {"weight", w}, {"bias", g.random({padded})}})
                            : g.op("matmul", {{"x", x}, {"y", w}, {"transpose_y", true}});
          ASSERT_NE(y, nullptr);
          y->producer()->epilogue = {{"gelu"}};
          expect_stored(g, y, linear ? "cpu.linear.stored" : "cpu.matmul.stored");
        }
      }
}

template <bool little>
kernel::Match match_relu(const kernel::MatchCall&) {
  kernel::KernelChoice c;
  c.kernel = little ? "relus.little" : "relus.stored";
  c.run = [](const kernel::KernelArgs& args) -> Status {
    for (int64_t i = 0; i < args.out[0].shape.count(); i++)
      args.out[0].as<float>()[i] = std::max(0.0f, args.in[0].as<float>()[i]);
    return {};
  };
  return kernel::Match::yes(std::move(c));
}

/// Two kernels for relu. The definition says which of them is for little memory, whatever their names are.
class Relus final : public kernel::Device {
 public:
  std::string_view name() const override { return "relus"; }
  std::string description() const override { return "two kernels for relu"; }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::cpu; }
  int rank() const override { return 0; }
  std::span<const kernel::KernelDef> kernels() const override {
    static const kernel::KernelDef defs[] = {
        {.name = "relus.little", .ops = {"relu"}, .match = match_relu<true>, .low_memory = true},
        {.name = "relus.stored", .ops = {"relu"}, .match = match_relu<false>}};
    return defs;
  }
};

TEST(Stored, DefinitionsSayWhatIsForLittleMemory) {
  const Relus relus;
  Graph g;
  g.function().body().set_outputs({g.op("relu", {{"x", g.input({3, 5})}})});
  for (const bool low_memory : {false, true}) {
    plan::PlanOptions o = options(false, 1);
    o.devices.insert(o.devices.begin(), &relus);
    o.low_memory = low_memory;
    const auto got = run(g.function(), g.inputs(), o);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_TRUE(got->has(low_memory ? "relus.little" : "relus.stored")) << got->kernels;
  }
}

/// With low_memory, products of few rows read a network's weights in place, too.
TEST(Stored, FewRowsOfNetworks) {
  for (Form form : kForms)
    for (const int64_t rows : {1, 3}) {
      SCOPED_TRACE(cat(static_cast<int>(form), ": ", rows));
      Graph g(Opset::ios18);
      Value* y = g.op("matmul", {{"x", g.input({rows, 44})}, {"y", weights(g, form, {40, 44})}, {"transpose_y", true}});
      expect_same(g, {y});
      const bool in_place = form >= Form::network_fp16 && form != Form::network_int8 && form != Form::network_uint8 &&
                            form != Form::network_palette8;
      if (in_place) expect_stored(g, y, "cpu.matmul.stored");
    }
}

/// Without low_memory, weights of float16 are packed as float16. They take half the memory of the same weights in
/// float32 and give the same bits. `build` returns the output. runs: with float32, with float16.
void expect_halves_packed(Form form, const Shape& shape, int threads,
                          const std::function<Value*(Graph&, Value* weight)>& build, devices_test::Run (&runs)[2]) {
  const Tensor stored = codes(DType::fp16, shape);
  Tensor wide = Tensor::zeros(DType::fp32, shape).value();
  half_to_float(stored.as<uint16_t>().data(), wide.mut<float>().data(), static_cast<size_t>(shape.count()));
  for (const bool as_half : {false, true}) {
    Graph g(Opset::ios18);
    Value* y = build(g, as_half ? weights(g, form, shape) : g.constant(wide));
    ASSERT_NE(y, nullptr);
    g.function().body().set_outputs({y});
    auto got = run(g.function(), g.inputs(), true, threads, 2);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    runs[as_half] = std::move(*got);
  }
  EXPECT_LE(100 * runs[1].constants->packed_bytes(), 51 * runs[0].constants->packed_bytes());
  EXPECT_EQ(std::memcmp(runs[0].outputs[0].data(), runs[1].outputs[0].data(), runs[0].outputs[0].bytes()), 0);
}

TEST(Stored, ProductsPackHalves) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "needs instructions that convert float16";
  struct Case {
    int64_t rows, depth, made;
    bool columns;  ///< the weights are [depth, made]
  };
  const Case cases[] = {{5, 44, 37, false},   {70, 700, 96, false},   {70, 44, 40, true},
                        {9, 1030, 130, true}, {200, 768, 770, false}, {320, 770, 512, true}};
  for (Form form : {Form::fp16, Form::network_fp16})
    for (const Case& c : cases)
      for (int threads : {1, 2}) {
        SCOPED_TRACE(
            cat(static_cast<int>(form), ": ", c.rows, " x ", c.depth, " x ", c.made, ", ", threads, " threads"));
        devices_test::Run runs[2];
        const auto product = [&](Graph& g, Value* w) {
          Value* x = g.input({c.rows, c.depth});
          return g.op("matmul", {{"x", x}, {"y", w}, {"transpose_y", !c.columns}});
        };
        const Shape shape{c.columns ? c.depth : c.made, c.columns ? c.made : c.depth};
        ASSERT_NO_FATAL_FAILURE(expect_halves_packed(form, shape, threads, product, runs));
        EXPECT_EQ(runs[1].kernels, runs[0].kernels + "(packed as float16)");
      }
}

TEST(Stored, PointwisePacksHalves) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "needs instructions that convert float16";
  struct Case {
    int64_t in, out, rows, columns;
  };
  const Case cases[] = {{40, 24, 7, 7},  {33, 96, 30, 17},  {64, 40, 9, 5},  {20, 48, 1, 1},
                        {160, 72, 1, 2}, {300, 20, 40, 40}, {96, 112, 3, 5}, {24, 200, 61, 50}};
  for (Form form : {Form::fp16, Form::network_fp16})
    for (const Case& c : cases)
      for (int threads : {1, 2}) {
        SCOPED_TRACE(cat(static_cast<int>(form), ": ", c.in, ", ", c.out, ", ", c.rows, ", ", threads, " threads"));
        devices_test::Run runs[2];
        const auto convolution = [&](Graph& g, Value* w) {
          Value* x = g.input({2, c.in, c.rows, c.columns});
          Value* y = g.op("conv", {{"x", x}, {"weight", w}, {"bias", g.random({c.out})}});
          return y == nullptr ? y : g.op("tanh", {{"x", y}});
        };
        ASSERT_NO_FATAL_FAILURE(expect_halves_packed(form, {c.out, c.in, 1, 1}, threads, convolution, runs));
        EXPECT_TRUE(runs[1].has("cpu.conv.pointwise(packed as float16)")) << runs[1].kernels;
        EXPECT_FALSE(runs[0].has("packed as float16")) << runs[0].kernels;
      }
}

TEST(Stored, DensePacksHalves) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "needs instructions that convert float16";
  struct Case {
    int64_t in, out, groups, taps, stride, size;
  };
  const Case cases[] = {{40, 48, 1, 2, 2, 15}, {64, 96, 2, 3, 2, 14},   {48, 120, 1, 4, 4, 31}, {33, 40, 1, 2, 1, 9},
                        {96, 96, 3, 3, 1, 6},  {1100, 70, 1, 2, 2, 13}, {96, 192, 3, 2, 2, 80}};
  for (Form form : {Form::fp16, Form::network_fp16})
    for (const Case& c : cases)
      for (int threads : {1, 2}) {
        SCOPED_TRACE(cat(static_cast<int>(form), ": ", c.in, ", ", c.out, ", ", c.size, ", ", threads, " threads"));
        devices_test::Run runs[2];
        const auto convolution = [&](Graph& g, Value* w) {
          Value* x = g.input({2, c.in, c.size, c.size});
          Value* y = g.op("conv", {{"x", x},
                                   {"weight", w},
                                   {"bias", g.random({c.out})},
                                   {"groups", static_cast<int>(c.groups)},
                                   {"strides", Tensor::i32({c.stride, c.stride})},
                                   {"pad_type", "same"}});
          return y == nullptr ? y : g.op("tanh", {{"x", y}});
        };
        const Shape shape{c.out, c.in / c.groups, c.taps, c.taps};
        ASSERT_NO_FATAL_FAILURE(expect_halves_packed(form, shape, threads, convolution, runs));
        EXPECT_TRUE(runs[1].has("cpu.conv.dense(packed as float16)")) << runs[1].kernels;
        EXPECT_TRUE(runs[0].has("cpu.conv.dense")) << runs[0].kernels;
        EXPECT_FALSE(runs[0].has("packed as float16")) << runs[0].kernels;
      }
}

TEST(Stored, TransposedPhasesPackHalves) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "needs instructions that convert float16";
  struct Case {
    int64_t in, out, groups, taps, size;
  };
  const Case cases[] = {{40, 48, 1, 4, 15}, {64, 96, 2, 3, 14}, {48, 120, 1, 4, 31}, {33, 40, 1, 3, 9}};
  for (Form form : {Form::fp16, Form::network_fp16})
    for (const Case& c : cases)
      for (int threads : {1, 2}) {
        SCOPED_TRACE(cat(static_cast<int>(form), ": ", c.in, ", ", c.out, ", ", c.size, ", ", threads, " threads"));
        devices_test::Run runs[2];
        const auto convolution = [&](Graph& g, Value* w) {
          return g.op("conv_transpose", {{"x", g.input({2, c.in, c.size, c.size})},
                                         {"weight", w},
                                         {"bias", g.random({c.out})},
                                         {"groups", static_cast<int>(c.groups)},
                                         {"strides", Tensor::i32({2, 2})}});
        };
        const Shape shape{c.in, c.out / c.groups, c.taps, c.taps};
        ASSERT_NO_FATAL_FAILURE(expect_halves_packed(form, shape, threads, convolution, runs));
        EXPECT_TRUE(runs[1].has("cpu.conv_transpose.phases(packed as float16)")) << runs[1].kernels;
        EXPECT_FALSE(runs[0].has("packed as float16")) << runs[0].kernels;
      }
}

/// Integers with scales are packed as bytes, at most 0.4 of float32's memory, and give the same bits.
TEST(Stored, ScaledIntegersPackBytes) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "needs vectors that widen bytes fast";
  struct Case {
    int64_t rows, depth, made;
    bool image;
  };
  const Case cases[] = {{70, 704, 96, false},  {9, 1024, 130, false}, {200, 768, 770, false}, {300, 64, 640, false},
                        {1, 64, 48, true},     {49, 320, 72, true},   {300, 96, 112, true},   {1500, 160, 40, true},
                        {196, 1024, 56, true}, {25, 32, 24, true}};
  for (DType type : {DType::int8, DType::uint8, DType::int4, DType::uint4})
    for (const bool by_block : {false, true})
      for (const Case& c : cases)
        for (int threads : {1, 2}) {
          SCOPED_TRACE(
              cat(type, by_block ? " in blocks: " : ": ", c.rows, " x ", c.depth, " x ", c.made, ", ", threads));
          const int64_t groups = by_block ? c.depth / 32 : 1;
          Shape shape{c.made, c.depth}, blocks{c.made, groups};
          for (int i = 0; i < 2 && c.image; i++) shape.push_back(1), blocks.push_back(1);
          const Tensor stored = codes(type, shape);
          devices_test::Run runs[2];
          for (const bool is_stored : {false, true}) {
            Graph g(Opset::ios18);
            const Tensor scale = g.random(blocks, 0.01f, 0.1f), offset = g.random(blocks, -3, 3);
            Tensor wide = Tensor::zeros(DType::fp32, shape).value();
            for (int64_t i = 0; i < shape.count(); i++) {
              const auto at = static_cast<size_t>(i / (c.depth / groups));
              const float zero = type == DType::int8 ? 0 : offset.as<float>()[at];
              wide.mut<float>()[static_cast<size_t>(i)] =
                  (static_cast<float>(load_f64(stored.view(), i)) - zero) * scale.as<float>()[at];
            }
            std::vector<NamedArg> args{{"data", stored}, {"scale", scale}};
            if (type != DType::int8) args.emplace_back("offset", offset);
            Value* w = is_stored ? g.op("constexpr_blockwise_shift_scale", std::move(args)) : g.constant(wide);
            Value* y = c.image ? g.op("conv", {{"x", g.input({1, c.depth, c.rows, 1})}, {"weight", w}})
                               : g.op("linear", {{"x", g.input({c.rows, c.depth})}, {"weight", w}});
            ASSERT_NE(y, nullptr);
            if (c.image) y = g.op("tanh", {{"x", y}});  // results in blocks of channels
            g.function().body().set_outputs({y});
            auto got = run(g.function(), g.inputs(), true, threads, 2);
            ASSERT_TRUE(got.ok()) << got.error().to_string();
            runs[is_stored] = std::move(*got);
          }
          EXPECT_TRUE(runs[1].has("packed as integers)")) << runs[1].kernels;
          EXPECT_LE(10 * runs[1].constants->packed_bytes(), 4 * runs[0].constants->packed_bytes());
          EXPECT_EQ(std::memcmp(runs[0].outputs[0].data(), runs[1].outputs[0].data(), runs[0].outputs[0].bytes()), 0);
        }
}

/// So are indices into tables of up to 16 entries, of all channels or of groups of whole vectors.
TEST(Stored, PalettesPackBytes) {
  if (devices::cpu::isa() == devices::cpu::Isa::base) GTEST_SKIP() << "needs vectors that look bytes up fast";
  struct Case {
    int64_t rows, depth, made, tables;
    bool image;
  };
  const Case cases[] = {{70, 704, 96, 1, false},  {9, 1024, 128, 4, false}, {200, 768, 770, 1, false},
                        {300, 64, 640, 2, false}, {1, 64, 48, 3, true},     {49, 320, 72, 1, true},
                        {300, 96, 112, 1, true},  {196, 1024, 64, 2, true}};
  for (DType type : {DType::uint1, DType::uint2, DType::uint3, DType::uint4})
    for (const Case& c : cases)
      for (int threads : {1, 2}) {
        SCOPED_TRACE(cat(type, ": ", c.rows, " x ", c.depth, " x ", c.made, ", ", c.tables, " tables, ", threads));
        const int64_t entries = int64_t{1} << bits(type);
        Shape shape{c.made, c.depth}, blocks{c.tables, 1};
        for (int i = 0; i < 2 && c.image; i++) shape.push_back(1), blocks.push_back(1);
        blocks.push_back(entries);
        blocks.push_back(1);
        const Tensor stored = codes(type, shape);
        devices_test::Run runs[2];
        for (const bool is_stored : {false, true}) {
          Graph g(Opset::ios18);
          const Tensor table = g.random(blocks);
          Tensor wide = Tensor::zeros(DType::fp32, shape).value();
          for (int64_t i = 0; i < shape.count(); i++) {
            const int64_t group = i / c.depth / (c.made / c.tables),
                          code = static_cast<int64_t>(load_f64(stored.view(), i));
            wide.mut<float>()[static_cast<size_t>(i)] = table.as<float>()[static_cast<size_t>(group * entries + code)];
          }
          Value* w =
              is_stored ? g.op("constexpr_lut_to_dense", {{"indices", stored}, {"lut", table}}) : g.constant(wide);
          Value* y = c.image ? g.op("conv", {{"x", g.input({1, c.depth, c.rows, 1})}, {"weight", w}})
                             : g.op("linear", {{"x", g.input({c.rows, c.depth})}, {"weight", w}});
          ASSERT_NE(y, nullptr);
          if (c.image) y = g.op("tanh", {{"x", y}});  // results in blocks of channels
          g.function().body().set_outputs({y});
          auto got = run(g.function(), g.inputs(), true, threads, 2);
          ASSERT_TRUE(got.ok()) << got.error().to_string();
          runs[is_stored] = std::move(*got);
        }
        EXPECT_TRUE(runs[1].has("packed as integers)")) << runs[1].kernels;
        EXPECT_LE(10 * runs[1].constants->packed_bytes(), 4 * runs[0].constants->packed_bytes());
        EXPECT_EQ(std::memcmp(runs[0].outputs[0].data(), runs[1].outputs[0].data(), runs[0].outputs[0].bytes()), 0);
      }
}

/// An operation that the kernels for stored weights refuse runs as it does without low_memory.
TEST(Stored, OthersArePacked) {
  Graph g;
  Value* y = g.op("conv", {{"x", g.input({1, 3, 32, 32})}, {"weight", g.random({16, 3, 3, 3})}, {"pad_type", "same"}});
  ASSERT_NE(y, nullptr);
  g.function().body().set_outputs({y});
  plan::PlanOptions low = options(true, 1);
  low.low_memory = true;
  const auto got = run(g.function(), g.inputs(), low);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_FALSE(got->has(".stored")) << got->kernels;
}

}  // namespace
}  // namespace moka::devices_test
