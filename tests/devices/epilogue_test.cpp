// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "devices/graph_util.h"

/// Every function of kernel/epilogues.inc, by the vector loops and by oneDNN's post-ops, compared with the executor's.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr const char* kNames[] = {
#define MOKA_EPILOGUE(name, ...) #name,
#include "kernel/epilogues.inc"
#undef MOKA_EPILOGUE
};

void expect_epilogue(const char* name, const char* kernel) {
  SCOPED_TRACE(cat(name, " in ", kernel));
  Graph g;
  Value* y = g.op("conv", {{"x", g.input({1, 32, 6, 7})}, {"weight", g.random({32, 32, 1, 1}, -0.3f, 0.3f)}});
  y->producer()->epilogue = {{name, 0.3f, 0.7f, ""}};
  expect_same_by(kernel, g, y);
}

TEST(Epilogue, EveryFunctionInVectorLoops) {
  for (const char* name : kNames) expect_epilogue(name, "cpu.conv.pointwise");
}

TEST(Epilogue, EveryFunctionWithOneDnn) {
  for (const char* name : kNames) expect_epilogue(name, "cpu.conv.onednn");
}

/// Its negative inputs are multiplied by alpha, so the result is NaN.
TEST(Epilogue, ClampedReluOfMinusInfinity) {
  Graph g;
  Tensor x = g.random({1, 32, 6, 7}), weight = g.random({32, 32, 1, 1});
  x.mut<float>()[5] = -std::numeric_limits<float>::infinity();
  Value* sum = g.op("add", {{"x", g.input_of(x)}, {"y", 0.5f}});
  Value* y = g.op("conv", {{"x", sum}, {"weight", weight}});
  for (Value* v : {sum, y}) v->producer()->epilogue = {{"clamped_relu", 0, 6, ""}};
  g.function().body().set_outputs({sum, y});
  const auto got = run(g.function(), g.inputs(), true), expected = run(g.function(), g.inputs(), false);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  EXPECT_TRUE(std::isnan(got->outputs[0].as<float>()[5]));
  for (size_t i = 0; i < 2; i++) expect_near(got->outputs[i], expected->outputs[i], 1e-5, cat("output ", i));
}

}  // namespace
}  // namespace moka::devices_test
