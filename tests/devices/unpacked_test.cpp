// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/half.h"
#include "devices/graph_util.h"
#include "plan/choices.h"
#include "plan/constants.h"
#include "plan/late.h"

/// Kernels that read their weights from the model's file until later predictions have packed them.
namespace moka::devices_test {

namespace {

using ir::DType;
using ir::Opset;
using ir::Shape;
using ir::Tensor;
using ir::Value;

/// The tensor in a mapped file, as fp16 if `half`.
Tensor in_file(const Tensor& t, bool half) {
  static int files;
  std::vector<uint16_t> halves;
  std::span<const std::byte> bytes{static_cast<const std::byte*>(t.data()), t.bytes()};
  if (half) {
    halves.resize(static_cast<size_t>(t.count()));
    float_to_half(t.as<float>().data(), halves.data(), halves.size());
    bytes = std::as_bytes(std::span(halves));
  }
  const std::string path = testing::TempDir() + cat("moka_unpacked_", ::getpid(), "_", ++files);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  auto mapped = map_file(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(mapped.ok());
  return Tensor::wrap(half ? DType::fp16 : DType::fp32, t.shape(), *mapped).value();
}

Value* weights(Graph& g, const Shape& shape, bool half) {
  Value* v = g.constant(in_file(g.random(shape), half));
  return half ? g.op("constexpr_cast", {{"source_val", v}, {"output_dtype", "fp32"}}) : v;
}

plan::PlanOptions late_options(Value* y, std::string_view kernel, int threads) {
  plan::PlanOptions o = options(true, threads);
  o.prepare_late = true;
  o.choices = std::make_shared<plan::KernelChoices>();
  o.choices->pins[y->producer()->name] = std::string(kernel);
  return o;
}

bool same_bits(const Run& a, const Run& b) {
  return std::memcmp(a.outputs[0].data(), b.outputs[0].data(), a.outputs[0].bytes()) == 0;
}

/// The first run packs nothing, the second one packs the weights, and both give the bits of weights that were packed
/// at once.
void expect_late(Graph& g, Value* y, std::string_view kernel) {
  SCOPED_TRACE(kernel);
  ASSERT_NE(y, nullptr);
  const Run packed = expect_same_by(kernel, g, y);
  ASSERT_EQ(packed.outputs.size(), 1u);
  for (const int threads : {1, 2, 3}) {
    const auto once = run(g.function(), g.inputs(), late_options(y, kernel, threads), 1);
    ASSERT_TRUE(once.ok()) << once.error().to_string();
    EXPECT_TRUE(once->has(kernel)) << once->kernels;
    ASSERT_NE(once->plan->late, nullptr);
    EXPECT_FALSE(once->plan->late->is_done());
    EXPECT_EQ(once->constants->packed_bytes(), 0u);
    EXPECT_TRUE(same_bits(*once, packed)) << threads;
    const auto twice = run(g.function(), g.inputs(), late_options(y, kernel, threads), 2);
    ASSERT_TRUE(twice.ok()) << twice.error().to_string();
    EXPECT_TRUE(twice->plan->late->is_done());
    EXPECT_EQ(twice->constants->packed_bytes(), packed.constants->packed_bytes());
    EXPECT_TRUE(same_bits(*twice, packed)) << threads;
  }
}

}  // namespace

TEST(Unpacked, Products) {
  struct Case {
    int64_t rows, depth, made;
  };
  const Case cases[] = {{1, 160, 300}, {37, 130, 300}, {300, 200, 210}};
  for (const bool half : {false, true})
    for (const Case& c : cases) {
      SCOPED_TRACE(cat(c.rows, half ? " halves" : " floats"));
      Graph g(Opset::ios18);
      expect_late(g,
                  g.op("linear", {{"x", g.input({c.rows, c.depth})},
                                  {"weight", weights(g, {c.made, c.depth}, half)},
                                  {"bias", g.constant(g.random({c.made}))}}),
                  "cpu.linear.gemm");
    }
}

TEST(Unpacked, ProductsOfColumns) {
  Graph g;
  expect_late(g, g.op("matmul", {{"x", g.input({70, 200})}, {"y", weights(g, {200, 150}, false)}}), "cpu.matmul.gemm");
}

TEST(Unpacked, ProductsOfQuarters) {
  for (const bool half : {false, true})
    for (const bool odd : {false, true}) {
      SCOPED_TRACE(cat(half ? "halves" : "floats", odd ? ", odd sizes" : ""));
      Graph g(Opset::ios18);
      // Odd: rows that are multiplied alone, and columns that are not alike.
      Tensor x = g.random({300, 256}), w = g.random({530, 256});
      for (int64_t i = 0; i < 256 && odd; i++) {
        x.mut<float>()[static_cast<size_t>(7 * 256 + i)] *= 1e4f;
        w.mut<float>()[static_cast<size_t>(70 * 256 + i)] *= 100;
      }
      Value* stored = g.constant(in_file(w, half));
      if (half) stored = g.op("constexpr_cast", {{"source_val", stored}, {"output_dtype", "fp32"}});
      expect_late(g, g.op("linear", {{"x", g.input_of(x)}, {"weight", stored}}), "cpu.linear.strassen");
    }
}

TEST(Unpacked, Convolutions) {
  struct Case {
    std::string_view kernel;
    Shape x, weight;
    std::string pad;
  };
  const Case cases[] = {{"cpu.conv.pointwise", {1, 190, 9, 13}, {200, 190, 1, 1}, "valid"},
                        {"cpu.conv.pointwise", {2, 160, 3, 3}, {216, 160, 1, 1}, "valid"},
                        {"cpu.conv.pointwise", {1, 64, 40, 40}, {520, 64, 1, 1}, "valid"},
                        {"cpu.conv.winograd", {1, 60, 14, 14}, {72, 60, 3, 3}, "same"},
                        {"cpu.conv.winograd", {2, 32, 40, 41}, {120, 32, 3, 3}, "same"}};
  for (const bool half : {false, true})
    for (const Case& c : cases) {
      SCOPED_TRACE(cat(c.x, half ? " halves" : " floats"));
      Graph g(Opset::ios18);
      expect_late(g,
                  g.op("conv", {{"x", g.input(c.x)},
                                {"weight", weights(g, c.weight, half)},
                                {"bias", g.constant(g.random({c.weight[0]}))},
                                {"pad_type", c.pad}}),
                  std::string(c.kernel));
    }
}

/// A plan for another shape takes what is packed.
TEST(Unpacked, PlansShareWeights) {
  Graph g;
  Value* y = g.op("linear", {{"x", g.input({40, 160})}, {"weight", weights(g, {300, 160}, false)}});
  g.function().body().set_outputs({y});
  plan::PlanOptions o = late_options(y, "cpu.linear.gemm", 2);
  const auto first = run(g.function(), g.inputs(), o, 1), second = run(g.function(), g.inputs(), o, 2),
             third = run(g.function(), g.inputs(), o, 1);
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_NE(first->plan->late, nullptr);
  EXPECT_NE(second->plan->late, nullptr);
  EXPECT_EQ(third->plan->late, nullptr);
  EXPECT_TRUE(same_bits(*first, *third));
}

/// Weights in memory are packed at once, because nothing would be saved: they are copied from memory to memory.
TEST(Unpacked, WeightsInMemoryDoNotWait) {
  Graph g;
  Value* y = g.op("linear", {{"x", g.input({40, 160})}, {"weight", g.constant(g.random({300, 160}))}});
  g.function().body().set_outputs({y});
  const auto r = run(g.function(), g.inputs(), late_options(y, "cpu.linear.gemm", 2), 1);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->plan->late, nullptr);
  EXPECT_GT(r->constants->packed_bytes(), 0u);
}

/// However short packing is, a run packs a quarter of the weights, so that no run takes much longer than the first.
TEST(Unpacked, RunsPackAQuarterEach) {
  constexpr int kLayers = 8;
  Graph g;
  Value* y = g.input({600, 160});
  for (int i = 0; i < kLayers; i++) y = g.op("linear", {{"x", y}, {"weight", weights(g, {160, 160}, false)}});
  g.function().body().set_outputs({y});
  const auto packed_after = [&](int runs) {
    plan::PlanOptions o = options(true, 1);
    o.prepare_late = true;
    const auto r = run(g.function(), g.inputs(), o, runs);
    EXPECT_TRUE(r.ok() && r->plan->late != nullptr);
    return r.ok() ? r->constants->packed_bytes() : 0;
  };
  const size_t all = packed_after(1 + kLayers), once = packed_after(2), twice = packed_after(3);
  EXPECT_GT(once, 0u);
  EXPECT_LE(once, all / 4);
  EXPECT_GT(twice, once);
  EXPECT_LE(twice, all / 2);
}

TEST(Unpacked, PredictionsAtTheSameTime) {
  Graph g;
  Value* y = g.input({40, 160});
  for (int i = 0; i < 6; i++) y = g.op("linear", {{"x", y}, {"weight", weights(g, {160, 160}, false)}});
  g.function().body().set_outputs({y});
  const auto expected = run(g.function(), g.inputs(), true, 1);
  ASSERT_TRUE(expected.ok());
  plan::PlanOptions o = options(true, 2);
  o.prepare_late = true;
  const ir::Type type = ir::Type::tensor(DType::fp32, g.inputs()[0].shape());
  const auto plan = plan::plan_block(g.function().body(), {&type, 1}, nullptr, o).value();
  ASSERT_NE(plan->late, nullptr);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; i++)
    callers.emplace_back([&] {
      runtime::ExecContext context;
      context.options = &o;
      const auto frame = runtime::Frame::make(plan, nullptr, context).value();
      frame->set_input(0, g.inputs()[0].data());
      for (int n = 0; n < 12; n++)
        if (!frame->run().ok() ||
            std::memcmp(frame->output(0).data, expected->outputs[0].data(), expected->outputs[0].bytes()) != 0)
          wrong++;
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(plan->late->is_done());
}

}  // namespace moka::devices_test
