// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

class Precision : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { MOKA_NEEDS_VULKAN(); }
};
INSTANTIATE_TEST_SUITE_P(Elementwise, Precision, testing::Bool(),
                         [](const auto& info) { return info.param ? "float16" : "float32"; });

TEST_P(Precision, FunctionsOfOneTensor) {
  const char* plain[] = {"abs",  "ceil",     "cos",   "erf",  "exp",     "exp2",   "floor",    "moka_hard_swish",
                         "relu", "relu6",    "round", "sign", "sigmoid", "silu",   "sin",      "sinh",
                         "cosh", "softplus", "atan",  "tan",  "tanh",    "square", "softsign", "gelu"};
  Region g(GetParam());
  Value* x = g.input({3, 5, 37}, -3, 3);
  Value* tan = g.input({3, 5, 37}, -1, 1);
  std::vector<Value*> all;
  for (const char* name : plain) all.push_back(g.op(name, {{"x", std::string_view(name) == "tan" ? tan : x}}));
  for (const char* mode : {"TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"})
    all.push_back(g.op("gelu", {{"x", x}, {"mode", mode}}));
  for (const char* name : {"acos", "asin", "atanh"}) all.push_back(g.op(name, {{"x", g.input({41}, -0.9f, 0.9f)}}));
  for (const char* name : {"sqrt", "log", "rsqrt", "inverse"})
    all.push_back(g.op(name, {{"x", g.input({41}, 0.1f, 4)}}));
  for (const char* name : {"elu", "leaky_relu", "threshold", "thresholded_relu"})
    all.push_back(g.op(name, {{"x", x}, {"alpha", 0.3f}}));
  for (const char* name : {"clip", "clamped_relu", "linear_activation", "scaled_tanh", "sigmoid_hard"})
    all.push_back(g.op(name, {{"x", x}, {"alpha", 0.25f}, {"beta", 0.75f}}));
  g.expect_same(all);
}

TEST_P(Precision, ValuesThatAreNoNumbers) {
  Region g(GetParam());
  const float inf = INFINITY;
  const std::vector<float> v = {NAN, inf, -inf, 0, -0.0f, 1, -1, 60000, -60000, 1e-7f};
  Value* x = g.input(Tensor::f32({10}, v));
  std::vector<Value*> all;
  for (const char* name : {"relu", "relu6", "abs", "sigmoid", "tanh", "moka_hard_swish", "softplus", "square", "sqrt"})
    all.push_back(g.op(name, {{"x", x}}));
  all.push_back(g.op("clip", {{"x", x}, {"alpha", -2.f}, {"beta", 2.f}}));
  all.push_back(g.op("maximum", {{"x", x}, {"y", g.constant(Tensor::f32({1}, std::vector<float>{0.5f}))}}));
  g.expect_same(all);
}

TEST_P(Precision, PairsOfTensorsThatRepeat) {
  const std::pair<Shape, Shape> shapes[] = {
      {{4, 5, 6}, {4, 5, 6}},          {{4, 5, 6}, {6}}, {{4, 5, 6}, {5, 1}}, {{4, 1, 6}, {5, 1}},
      {{2, 1, 3, 1, 5}, {4, 1, 2, 1}}, {{}, {3}},
  };
  for (const auto& [a, b] : shapes) {
    Region g(GetParam());
    Value *x = g.input(a, -2, 2), *y = g.input(b, 0.5f, 2);
    std::vector<Value*> all;
    for (const char* name : {"add", "sub", "mul", "real_div", "maximum", "minimum"})
      all.push_back(g.op(name, {{"x", x}, {"y", y}}));
    all.push_back(g.op("pow", {{"x", y}, {"y", x}}));
    for (const char* name : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
      all.push_back(g.op(name, {{"x", x}, {"y", y}}));
    Value* less = all[7 + 2];
    all.push_back(g.op("logical_not", {{"x", less}}));
    for (const char* name : {"logical_and", "logical_or", "logical_xor"})
      all.push_back(g.op(name, {{"x", less}, {"y", all[7 + 4]}}));
    all.push_back(g.op("select", {{"cond", less}, {"a", x}, {"b", y}}));
    g.expect_same(all);
  }
}

TEST(Powers, OfSmallWholeExponentsAreExactToAFewRoundings) {
  MOKA_NEEDS_VULKAN();
  std::vector<float> x, y;
  for (float base : {-37.3f, -1.7f, 0.021f, 3.f, 10.f, 61.7f, 112.9f})
    for (int exponent = -8; exponent <= 8; exponent++) {
      x.push_back(base);
      y.push_back(static_cast<float>(exponent));
    }
  Region g;
  const int64_t n = static_cast<int64_t>(x.size());
  const auto got = g.run({g.op("pow", {{"x", g.input(Tensor::f32({n}, x))}, {"y", g.input(Tensor::f32({n}, y))}})});
  ASSERT_EQ(got.refusal, "");
  for (size_t i = 0; i < x.size(); i++) {
    const double expected = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
    const double tolerance = std::fabs(y[i]) < 8 ? 5e-7 : 1e-5;
    EXPECT_NEAR(got.got[0].as<float>()[i] / expected, 1, tolerance) << x[i] << " to the power of " << y[i];
  }
}

TEST_P(Precision, Casts) {
  Region g(GetParam());
  Value* x = g.input({2, 33}, -300, 300);
  Value* whole = g.op("cast", {{"x", x}, {"dtype", "int32"}});
  Value* flag = g.op("cast", {{"x", whole}, {"dtype", "bool"}});
  g.expect_same({whole, flag, g.op("cast", {{"x", whole}, {"dtype", "fp32"}}),
                 g.op("cast", {{"x", flag}, {"dtype", "fp32"}}), g.op("cast", {{"x", flag}, {"dtype", "int32"}}),
                 g.op("cast", {{"x", x}, {"dtype", "bool"}})});
}

TEST_P(Precision, SlopesOfChannels) {
  Region g(GetParam());
  Value* x = g.input({2, 5, 3, 7});
  g.expect_same({g.op("prelu", {{"x", x}, {"alpha", g.constant(g.random({5}))}})});
}

TEST(Integers, WrapAndRoundAsTheReferenceDoes) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input(Tensor::i32({7, -7, 2147483647, -2147483648LL, 5, 0}));
  Value* y = g.input(Tensor::i32({2, 2, 1, -1, 0, -3}));
  std::vector<Value*> all;
  for (const char* name : {"add", "sub", "mul", "real_div", "floor_div", "mod", "maximum", "minimum", "less", "equal"})
    all.push_back(g.op(name, {{"x", x}, {"y", y}}));
  g.expect_same(all);
}

TEST(Integers, OfOneTensor) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input(Tensor::i32({7, -7, 2147483647, -2147483648LL, 50000, 0}));
  std::vector<Value*> all;
  for (const char* name : {"abs", "sign", "square"}) all.push_back(g.op(name, {{"x", x}}));
  all.push_back(g.op("threshold", {{"x", x}, {"alpha", 5}}));
  g.expect_same(all);
}

TEST(Chains, NeedBarriersOnlyWhereOneReadsWhatAnotherWrote) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input({64});
  Value *a = g.op("softmax", {{"x", x}, {"axis", 0}}), *b = g.op("cumsum", {{"x", x}});
  Value* c = g.op("add", {{"x", a}, {"y", b}});
  const auto r = g.expect_same({c});
  EXPECT_EQ(r.counters.dispatches, 3u);
  // Uploaded memory that is not unified is copied first, and copied back at the end.
  auto features = devices::vulkan::Context::probe();
  EXPECT_EQ(r.counters.barriers, features->unified ? 1u : 3u);
  EXPECT_EQ(r.counters.uploaded, features->unified ? 0u : 256u);
}

TEST(Chains, NeedBarriersWhereOneWritesWhatAnotherRead) {
  MOKA_NEEDS_VULKAN();
  Region g;
  g.share_in_place();
  Value* a = g.op("softmax", {{"x", g.input({64})}, {"axis", 0}});
  Value* sums = g.op("cumsum", {{"x", a}});
  // In the memory of `a`, which the sums may still read.
  const auto r = g.expect_same({sums, g.op("exp", {{"x", a}})});
  EXPECT_EQ(r.counters.dispatches, 3u);
  auto features = devices::vulkan::Context::probe();
  EXPECT_EQ(r.counters.barriers, features->unified ? 2u : 4u);
}

TEST(Chains, EpiloguesAreAppliedByTheKernelOrAfterIt) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input({100}, -3, 3);
  Value* y = g.op("mul", {{"x", x}, {"y", g.constant(g.random({100}))}});
  Op* op = y->producer();
  op->epilogue = {{"linear_activation", 2, 0.5f}, {"tanh"}, {"square"}, {"sqrt"}, {"leaky_relu", 0.1f}, {"silu"}};
  const auto r = g.expect_same({y});
  EXPECT_EQ(r.counters.dispatches, 1u);  // the product takes two, and what comes after it is joined with it
}

}  // namespace
}  // namespace moka::vulkan_test
