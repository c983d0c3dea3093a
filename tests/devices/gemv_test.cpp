// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/half.h"
#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

namespace moka::devices_test {
namespace {

using namespace ir;

/// Scales and offsets are fp32, so expanding does not round.
struct StoredKind {
  std::string name;
  /// returns null if the weights cannot have these sizes
  std::function<Value*(Graph&, int64_t made, int64_t depth)> weights;
  int64_t most_rows = 4;  ///< most rows of x for which the weights are read as stored
};

Value* halves(Graph& g, int64_t made, int64_t depth) {
  const Tensor wide = g.random({made, depth});
  Tensor t = *Tensor::zeros(DType::fp16, wide.shape());
  float_to_half(wide.as<float>().data(), static_cast<uint16_t*>(t.mutable_data()), static_cast<size_t>(t.count()));
  return g.op("constexpr_cast", {{"source_val", t}, {"output_dtype", "fp32"}});
}

StoredKind scaled(DType dtype, int64_t block, bool offset) {
  return {cat(dtype, " block ", block, offset ? " offset" : ""), [=](Graph& g, int64_t made, int64_t depth) -> Value* {
            const int64_t groups = block == 0 ? 1 : depth / block;
            if (block != 0 && depth % block != 0) return nullptr;
            std::vector<NamedArg> args{{"data", random_bytes(dtype, {made, depth}, 7)},
                                       {"scale", g.random({made, groups}, 0.01f, 0.1f)}};
            if (offset) args.emplace_back("offset", g.random({made, groups}, -3, 3));
            return g.op("constexpr_blockwise_shift_scale", std::move(args));
          }};
}

StoredKind palette(DType dtype, int64_t groups, bool rescaled = false) {
  return {
      cat(dtype, " palettes ", groups, rescaled ? " with scales" : ""),
      [=](Graph& g, int64_t made, int64_t depth) -> Value* {
        if (made % groups != 0) return nullptr;
        Tensor lut = g.random({groups, 1, int64_t{1} << bits(dtype), 1});
        // Exact in half precision, as converters make them.
        for (float& v : lut.mut<float>()) v = static_cast<float>(half(v));
        Value* w = g.op("constexpr_lut_to_dense", {{"indices", random_bytes(dtype, {made, depth}, 9)}, {"lut", lut}});
        if (rescaled)
          w = g.op("constexpr_blockwise_shift_scale", {{"data", w}, {"scale", g.random({made, 1}, 0.5f, 2)}});
        return w;
      }};
}

Tensor half_floats(Graph& g, const Shape& shape) {
  const Tensor wide = g.random(shape);
  Tensor t = *Tensor::zeros(DType::fp16, shape);
  float_to_half(wide.as<float>().data(), static_cast<uint16_t*>(t.mutable_data()), static_cast<size_t>(t.count()));
  return t;
}

Value* widened(Graph& g, Value* w) { return g.op("constexpr_cast", {{"source_val", w}, {"output_dtype", "fp32"}}); }

/// A mask in which about one of eight bits is set, and the number of set bits.
std::pair<Tensor, int64_t> mask_of(const Shape& shape) {
  Tensor mask = *Tensor::zeros(DType::uint1, shape);
  std::mt19937 draw(11);
  int64_t set = 0;
  for (int64_t i = 0; i < mask.count(); i++) {
    const bool there = draw() % 8 == 0;
    store_i64(mask.view(), i, there);
    set += there;
  }
  return {mask, set};
}

/// Weights that kernels cannot read as stored are packed as float16.
std::vector<StoredKind> other_forms() {
  std::vector<StoredKind> all{
      {"form: sparse",
       [](Graph& g, int64_t made, int64_t depth) {
         const auto [mask, set] = mask_of({made, depth});
         return widened(g,
                        g.op("constexpr_sparse_to_dense", {{"nonzero_data", half_floats(g, {set})}, {"mask", mask}}));
       }},
      {"form: sparse palette",
       [](Graph& g, int64_t made, int64_t depth) {
         const auto [mask, set] = mask_of({made, depth});
         const auto both =
             g.ops("constexpr_lut_to_sparse", {{"indices_mask", mask},
                                               {"indices_nonzero_data", random_bytes(DType::uint4, {set}, 9)},
                                               {"lut", half_floats(g, {1, 1, 16, 1})}});
         return widened(g, g.op("constexpr_sparse_to_dense", {{"nonzero_data", both[1]}, {"mask", both[0]}}));
       }},
      {"form: vectors", [](Graph& g, int64_t made, int64_t depth) -> Value* {
         if (made % 2 != 0) return nullptr;
         return widened(g,
                        g.op("constexpr_lut_to_dense", {{"indices", random_bytes(DType::uint4, {made / 2, depth}, 9)},
                                                        {"lut", half_floats(g, {1, 1, 16, 2})},
                                                        {"vector_axis", 0}}));
       }}};
  for (StoredKind& k : all) k.most_rows = devices::cpu::isa() == devices::cpu::Isa::base ? 0 : 2;
  return all;
}

std::vector<StoredKind> stored_kinds() {
  std::vector<StoredKind> all{{"fp32",
                               [](Graph& g, int64_t made, int64_t depth) {
                                 return g.constant(g.random({made, depth}));
                               },
                               2},
                              {"fp16", halves}};
  for (DType t : {DType::int8, DType::uint8, DType::int4, DType::uint4})
    for (int64_t block : {0, 16, 32, 64, 128})
      for (bool offset : {false, true}) all.push_back(scaled(t, block, offset));
  all.push_back(scaled(DType::int4, 8, true));
  all.push_back(scaled(DType::uint4, 256, true));
  for (DType t : {DType::uint1, DType::uint2, DType::uint3, DType::uint4, DType::uint6, DType::uint8})
    for (int64_t groups : {1, 2}) all.push_back(palette(t, groups));
  all.push_back(palette(DType::uint4, 1, true));
  for (StoredKind& k : other_forms()) all.push_back(std::move(k));
  return all;
}

/// Weights with blocks that the kernel supports are read as stored, all others are expanded. Both give the same
/// results.
TEST(Gemv, EveryKindAndSize) {
  for (const StoredKind& kind : stored_kinds())
    for (auto [made, depth] :
         {std::pair<int64_t, int64_t>{6, 1}, {5, 7}, {2, 17}, {34, 96}, {8, 128}, {66, 1024}, {18, 400}})
      for (int64_t rows : {1, 2, 3, 4, 5}) {
        SCOPED_TRACE(cat(kind.name, " [", made, ", ", depth, "] rows ", rows));
        Graph g(Opset::ios18);
        Value* w = kind.weights(g, made, depth);
        if (w == nullptr) continue;
        Value* y = g.op("linear", {{"x", g.input({rows, depth})}, {"weight", w}, {"bias", g.random({made})}});
        const auto r = expect_same(g, {y}, 2e-6, true);
        ASSERT_NE(r.plan, nullptr);
        const bool whole =
            kind.name.find("block") == std::string::npos || kind.name.find("block 0") != std::string::npos;
        if (whole && rows <= kind.most_rows) {
          EXPECT_EQ(step_of(r, "linear").choice->kernel, "cpu.linear.gemv");
        }
        if (rows > kind.most_rows) {
          EXPECT_NE(step_of(r, "linear").choice->kernel, "cpu.linear.gemv");
        }
      }
}

TEST(Gemv, ColumnsOfAMatrix) {
  for (const StoredKind& kind : stored_kinds())
    for (auto [made, depth] : {std::pair<int64_t, int64_t>{40, 6}, {256, 34}, {17, 2}}) {
      SCOPED_TRACE(cat(kind.name, " [", made, ", ", depth, "]"));
      Graph g(Opset::ios18);
      Value* w = kind.weights(g, depth, made);  // blocks and palettes are along the other axis
      if (w == nullptr) continue;
      Value* x = g.input({2, 1, depth});
      expect_same(
          g, {g.op("matmul", {{"x", x}, {"y", w}}), g.op("matmul", {{"x", x}, {"y", w}, {"bias", g.random({made})}})},
          2e-6, true);
    }
}

TEST(Gemv, EpiloguesAndThreads) {
  Graph g(Opset::ios18);
  Value* w = scaled(DType::int4, 32, false).weights(g, 1111, 512);
  Value* y = g.op("linear", {{"x", g.input({1, 512})}, {"weight", w}, {"bias", g.random({1111})}});
  y->producer()->epilogue.push_back({"relu", 0, 0, "r"});
  g.function().body().set_outputs({y});
  auto one = run(g.function(), g.inputs(), true, 1), two = run(g.function(), g.inputs(), true, 2);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->outputs[0], two->outputs[0]);
  for (float v : one->outputs[0].as<float>()) EXPECT_GE(v, 0);
}

TEST(Gemv, SpecialValues) {
  for (const StoredKind& kind : stored_kinds()) {
    SCOPED_TRACE(kind.name);
    Graph g(Opset::ios18);
    Tensor x = g.random({3, 1024});
    x.mut<float>()[3] = INFINITY;
    x.mut<float>()[1024 + 700] = NAN;
    Value* w = kind.weights(g, 4, 1024);
    expect_same(g, {g.op("linear", {{"x", g.input_of(x)}, {"weight", w}})}, 2e-6, true);
  }
}

TEST(Gemv, RowsOfATable) {
  for (const StoredKind& kind : stored_kinds()) {
    SCOPED_TRACE(kind.name);
    Graph g(Opset::ios18);
    Value* w = kind.weights(g, 10, 256);
    Value* y = g.op("gather", {{"x", w}, {"indices", g.input_of(Tensor::i32({3, 0, -1, 9}))}, {"axis", 0}});
    const auto r = expect_same(g, {y}, 1e-6);
    EXPECT_TRUE(r.kernels.starts_with("cpu.gather"));
  }
}

/// Neither the plan nor the constant pool holds the weights in fp32.
TEST(Gemv, WeightsStaySmall) {
  const int64_t made = 512, depth = 1024;
  for (const StoredKind& kind : stored_kinds()) {
    if (kind.most_rows == 0) continue;
    SCOPED_TRACE(kind.name);
    Graph g(Opset::ios18);
    Value* w = kind.weights(g, made, depth);
    const auto r = expect_same(g, {g.op("linear", {{"x", g.input({1, depth})}, {"weight", w}})}, 2e-6);
    ASSERT_NE(r.plan, nullptr);
    EXPECT_EQ(r.kernels.find("cpu.linear.gemv"), 0u);
    for (const plan::Place& p : r.plan->sequence.places) {
      if (kind.name == "fp32" || p.type != Type::tensor(DType::fp32, {made, depth})) continue;
      const auto* constant = std::get_if<plan::Constant>(&p.storage);
      EXPECT_TRUE(constant == nullptr || constant->tensor.empty_handle());
    }
    const bool large = kind.name.starts_with("uint6") || kind.name.starts_with("uint8 palettes") ||
                       kind.name.starts_with("form"),
               wider = large || kind.name.starts_with("uint3");
    EXPECT_EQ(r.has("packed"), wider);
    // Packed elements, and scales and offsets for blocks of at least 8.
    EXPECT_LE(r.constants->packed_bytes(), static_cast<size_t>(made * depth) * (large ? 2 : 1) + 4096);
    if (kind.name.find("block") == std::string::npos && !wider) {
      EXPECT_LE(r.constants->packed_bytes(), 4096u);
    }
  }
}

}  // namespace
}  // namespace moka::devices_test
