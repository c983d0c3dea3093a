// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/chain.h"

#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

/// Expects the same results as for single operations, from the given number of dispatches.
void expect_dispatches(Region& g, const std::vector<Value*>& outputs, size_t dispatches) {
  const auto r = g.expect_same(outputs);
  EXPECT_EQ(r.counters.dispatches, dispatches);
}

TEST(Chain, OperationsOnEqualShapesAreOneDispatch) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input({3, 5, 7});
  Value* y = g.input({3, 5, 7});
  Value* sum = g.op("add", {{"x", g.op("exp", {{"x", x}})}, {"y", y}});
  expect_dispatches(g, {g.op("tanh", {{"x", g.op("mul", {{"x", sum}, {"y", x}})}})}, 1);
}

TEST(Chain, ResultsInPlaceOfInputsAreJoinedToo) {
  MOKA_NEEDS_VULKAN();
  Region g;
  g.share_in_place();
  Value* x = g.op("softmax", {{"x", g.input({3, 8})}, {"axis", 1}});
  Value* sum = g.op("add", {{"x", g.op("exp", {{"x", x}})}, {"y", g.input({3, 1})}});
  expect_dispatches(g, {g.op("mul", {{"x", g.op("sqrt", {{"x", sum}})}, {"y", g.input({3, 8})}})}, 2);
}

TEST(Chain, NumbersAreInstructionsAndNoInputs) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* v = g.input({1000}, 0.5f, 2);
  // Seven inputs, were they not numbers.
  for (int i = 0; i < 4; i++) {
    v = g.op("mul", {{"x", v}, {"y", 0.75f}});
    v = g.op("sub", {{"x", g.op("sqrt", {{"x", v}})}, {"y", -0.5f}});
  }
  expect_dispatches(g, {v}, 1);
}

TEST(Chain, BroadcastsAlongDimensionsThatDiffer) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.input({2, 6, 4, 5});
  Value* channels = g.op("add", {{"x", x}, {"y", g.input({6, 1, 1})}});
  expect_dispatches(g, {g.op("maximum", {{"x", channels}, {"y", g.input({2, 1, 1, 1})}})}, 1);
  Region h;
  x = h.input({4, 6});
  Value* rows = h.op("mul", {{"x", h.input({4, 1})}, {"y", x}});
  expect_dispatches(h, {h.op("sub", {{"x", h.input({6})}, {"y", rows}})}, 1);
}

TEST(Chain, AViewOfTheShapeBetweenIsJoinedToo) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.op("mul", {{"x", g.input({2, 3, 8})}, {"y", g.input({3, 1})}});
  Value* flat = g.op("reshape", {{"x", x}, {"shape", Tensor::i32({6, 8})}});
  g.expect_same({g.op("add", {{"x", flat}, {"y", g.input({8})}})});
}

TEST(Chain, WhatOthersReadIsComputedOnce) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.op("exp", {{"x", g.input({64})}});
  Value* a = g.op("sin", {{"x", x}});
  Value* b = g.op("softmax", {{"x", x}, {"axis", 0}});
  expect_dispatches(g, {g.op("add", {{"x", a}, {"y", b}})}, 3);
}

TEST(Chain, WhatAnUpdateKeepsIsWritten) {
  MOKA_NEEDS_VULKAN();
  Region g(false, Opset::ios18);
  g.share_in_place();
  // The last reader of x writes every second element of it, in place.
  Value* x = g.op("exp", {{"x", g.input({4, 16})}});
  Value* y = g.op("sin", {{"x", x}});
  Value* updated = g.op(
      "slice_update",
      {{"x", x}, {"update", g.input({4, 8})}, {"begin", Ints{0, 0}}, {"end", Ints{4, 16}}, {"stride", Ints{1, 2}}});
  g.expect_same({y, updated});
}

TEST(Chain, WhatTheHostReadsIsWritten) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.op("exp", {{"x", g.input({64})}});
  expect_dispatches(g, {x, g.op("sin", {{"x", x}})}, 2);
}

TEST(Chain, AValueThatIsBroadcastIsNotComputedAgain) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* x = g.op("exp", {{"x", g.input({8, 1})}});
  expect_dispatches(g, {g.op("add", {{"x", x}, {"y", g.input({8, 30})}})}, 2);
}

TEST(Chain, AProgramThatIsTooLongIsSeveral) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* v = g.input({128});
  for (int i = 0; i < 30; i++) v = g.op("sin", {{"x", v}});
  const auto r = g.expect_same({v});
  EXPECT_EQ(r.counters.dispatches, (30 + devices::gpu::Chain::kNodes - 1) / devices::gpu::Chain::kNodes);
}

TEST(Chain, MoreInputsThanAProgramHasAreSeveral) {
  MOKA_NEEDS_VULKAN();
  Region g;
  Value* v = g.input({40});
  for (int i = 0; i < 9; i++) v = g.op("add", {{"x", v}, {"y", g.input({40})}});
  const auto r = g.expect_same({v});
  EXPECT_EQ(r.counters.dispatches, 2u);
}

TEST(Chain, Float16IsRoundedAtTheEnd) {
  MOKA_NEEDS_VULKAN();
  Region g(true);
  Value* x = g.op("mul", {{"x", g.input({5, 9})}, {"y", g.input({9})}});
  // The three inputs become float16 first; the result becomes float32 in the chain.
  expect_dispatches(g, {g.op("sub", {{"x", g.op("sigmoid", {{"x", x}})}, {"y", g.input({5, 1})}})}, 4);
}

TEST(Chain, EveryFunctionInAChainIsTheSame) {
  MOKA_NEEDS_VULKAN();
  for (const char* name : {"abs", "ceil", "cos", "erf", "exp", "floor", "relu", "round", "sigmoid", "sign", "silu",
                           "sin", "softplus", "sqrt", "square", "tanh"}) {
    SCOPED_TRACE(name);
    Region g;
    Value* x = g.op("add", {{"x", g.input({50}, 0.5f, 3)}, {"y", g.input({50}, 0.5f, 3)}});
    expect_dispatches(g, {g.op(name, {{"x", x}})}, 1);
  }
  for (const char* name : {"add", "sub", "mul", "real_div", "maximum", "minimum", "pow"}) {
    SCOPED_TRACE(name);
    Region g;
    Value* x = g.op("exp", {{"x", g.input({50})}});
    expect_dispatches(g, {g.op(name, {{"x", x}, {"y", g.input({50}, 0.5f, 3)}})}, 1);
  }
}

}  // namespace
}  // namespace moka::vulkan_test
