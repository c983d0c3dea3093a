// SPDX-License-Identifier: Apache-2.0
#include "devices/graph_util.h"

/// Operations of different attributes that share a weight do not share its packed form.
namespace moka::devices_test {
namespace {

using namespace ir;

/// Both outputs must equal the reference's. Their operations are pinned to `kernel`.
void expect_both(Graph& g, std::string_view kernel, Value* a, Value* b) {
  ASSERT_TRUE(a != nullptr && b != nullptr);
  g.function().body().set_outputs({a, b});
  plan::PlanOptions o = options(true, 2);
  o.choices = std::make_shared<plan::KernelChoices>();
  for (const Value* v : {a, b}) o.choices->pins[v->producer()->name] = std::string(kernel);
  const auto got = run(g.function(), g.inputs(), o), expected = run(g.function(), g.inputs(), false, 1);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  ASSERT_TRUE(expected.ok());
  for (const plan::Step& s : got->plan->sequence.steps)
    if (const plan::KernelCall* call = plan::kernel_of(s);
        call != nullptr && (call->op == a->producer() || call->op == b->producer())) {
      EXPECT_EQ(call->choice->kernel, kernel);
    }
  for (size_t i = 0; i < 2; i++) expect_near(got->outputs[i], expected->outputs[i], 1e-5, cat("output ", i));
}

TEST(OneWeight, OfConvolutionsWithOtherGroups) {
  struct Case {
    std::string_view kernel;
    int64_t out, in;
    int few, many;  ///< groups
  };
  for (const Case& c : {Case{"cpu.conv.narrow", 4, 3, 1, 2}, {"cpu.conv.groups", 192, 5, 2, 4}}) {
    SCOPED_TRACE(c.kernel);
    Graph g;
    Value* weight = g.constant(g.random({c.out, c.in, 3, 3}));
    const auto conv = [&](int groups) {
      return g.op(
          "conv",
          {{"x", g.input({1, groups * c.in, 9, 11})}, {"weight", weight}, {"groups", groups}, {"pad_type", "same"}});
    };
    Value* a = conv(c.few);
    expect_both(g, c.kernel, a, conv(c.many));
  }
}

/// The padding decides which taps belong to a phase.
TEST(OneWeight, OfTransposedConvolutionsWithOtherPadding) {
  Graph g;
  Value* weight = g.constant(g.random({5, 6, 4, 3}));
  Value* x = g.input({1, 5, 7, 9});
  const auto conv = [&](const std::vector<int64_t>& pad) {
    return g.op("conv_transpose", {{"x", x},
                                   {"weight", weight},
                                   {"strides", Tensor::i32({2, 2})},
                                   {"pad_type", "custom"},
                                   {"pad", Tensor::i32(pad)}});
  };
  Value* a = conv({0, 0, 0, 0});
  expect_both(g, "cpu.conv_transpose.phases", a, conv({1, 1, 1, 1}));
}

Tensor numbers(DType type, const std::vector<double>& values) {
  Tensor t = *Tensor::zeros(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); i++) store_f64(t.view(), static_cast<int64_t>(i), values[i]);
  return t;
}

/// Two trees ask for the same threshold and have different leaves.
TEST(OneWeight, OfTreesWithOtherLeaves) {
  Graph g;
  Value* x = g.input_of(numbers(DType::fp64, {1}));
  Value* threshold = g.constant(numbers(DType::fp64, {0.5, 0, 0}));
  const auto tree = [&](double low, double high) {
    return g.op("ml_tree_ensemble", {{"x", x},
                                     {"mode", numbers(DType::uint8, {0, 6, 6})},
                                     {"feature", numbers(DType::int32, {0, 0, 0})},
                                     {"threshold", threshold},
                                     {"on_true", numbers(DType::int32, {1, 0, 1})},
                                     {"on_false", numbers(DType::int32, {2, 1, 2})},
                                     {"missing_true", numbers(DType::boolean, {0, 0, 0})},
                                     {"single", numbers(DType::boolean, {0, 0, 0})},
                                     {"roots", numbers(DType::int32, {0})},
                                     {"leaf_index", numbers(DType::int32, {0, 0})},
                                     {"leaf_value", numbers(DType::fp64, {low, high})},
                                     {"base", numbers(DType::fp64, {0})}});
  };
  Value *a = tree(1, 2), *b = tree(3, 4);
  expect_both(g, "cpu.ml.trees", a, b);
}

/// Two machines have the same numbers in other places.
TEST(OneWeight, OfSupportVectorsWithOtherColumns) {
  constexpr int64_t kDepth = 3, kVectors = 40;
  Graph g;
  std::vector<double> all(kVectors), ends(kVectors + 1), firsts(kVectors), lasts(kVectors, kDepth - 1);
  for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<double>(i) / 10;
  for (size_t i = 0; i < ends.size(); i++) ends[i] = static_cast<double>(i);
  Value* x = g.input_of(numbers(DType::fp64, {1, 2, 3}));
  Value* values = g.constant(numbers(DType::fp64, all));
  const auto number = [](double v) {
    Tensor t = *Tensor::zeros(DType::fp64, {});
    t.mut<double>()[0] = v;
    return t;
  };
  const auto products = [&](const std::vector<double>& columns) {
    return g.op("ml_svm_kernel", {{"x", x},
                                  {"row_begin", numbers(DType::int64, ends)},
                                  {"columns", numbers(DType::int64, columns)},
                                  {"values", values},
                                  {"kernel", "linear"},
                                  {"gamma", number(1)},
                                  {"c", number(0)},
                                  {"degree", Tensor::scalar_i64(DType::int32, 1)},
                                  {"exact", Tensor::boolean(true)}});
  };
  Value *a = products(firsts), *b = products(lasts);
  expect_both(g, "cpu.ml.svm", a, b);
}

}  // namespace
}  // namespace moka::devices_test
