// SPDX-License-Identifier: Apache-2.0
#include "lint_util.h"
#include "moka/trace.h"
#include "temporary_folder.h"

/// Operations and layouts that cost dispatches.
namespace moka::lint_test {
namespace {

using Middle = std::function<Value(ProgramBuilder&, Value)>;

/// x -> linear in float16 -> `middle` -> linear -> y.
ModelSource between_linears(const Middle& middle, bool has_first = true, bool has_last = true,
                            const std::string& type = "fp16") {
  ProgramBuilder b("ios17");
  Value x = b.input("x", DataType::float32, {4, 16});
  if (type == "fp16") x = b.op("cast", {{"x", x}, {"dtype", "fp16"}}, "half");
  const auto linear = [&](Value v, const std::string& name, unsigned seed) {
    return b.op("linear", {{"x", v}, {"weight", b.constant(noise({16, 16}, 0.3f, seed), type)}}, name);
  };
  if (has_first) x = linear(x, "first", 3);
  x = middle(b, x);
  if (has_last) x = linear(x, "last", 4);
  float_output(b, x);
  return b.source();
}

Value gathered(ProgramBuilder& b, Value x) {
  return b.op("gather", {{"x", x}, {"indices", std::vector<int>{3, 1, 2, 0}}, {"axis", 0}}, "rows");
}

lint::Options only(const std::string& rule) {
  lint::Options options;
  options.only = {rule};
  return options;
}

TEST(Dispatch, AGatherBetweenProductsLeavesTheNeuralEngine) {
  const lint::Report r = report(between_linears(gathered), only("unit-switch"));
  ASSERT_TRUE(finds(r, "unit-switch", "'rows' (gather)", kNote));
  const lint::Finding& f = r.findings.at(0);
  EXPECT_EQ(f.reason, "the Neural Engine stops for it and starts again after it: gathers run on the CPU");
  EXPECT_EQ(f.evidence, "https://github.com/apple/coremltools/issues/1103");
  EXPECT_EQ(f.remedy, "Instead: slice where the indices are constant, or multiply by a matrix of zeros and ones.");
}

TEST(Dispatch, RefusedOperationsInARowAreOneFinding) {
  const ModelSource model = between_linears([](ProgramBuilder& b, Value x) {
    const std::vector<Value> best = b.ops("topk", {{"x", x}, {"k", 4}, {"axis", 0}}, "best");
    return b.op("gather_along_axis", {{"x", best[0]}, {"indices", best[1]}, {"axis", 0}}, "picked");
  });
  const lint::Report r = report(model, only("unit-switch"));
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_NE(r.findings[0].evidence.find("1 more around it"), std::string::npos) << r.findings[0].evidence;
}

TEST(Dispatch, RefusedOperationsAtAnEndAreFine) {
  EXPECT_TRUE(found(between_linears(gathered, false, true), only("unit-switch")).empty());
  EXPECT_TRUE(found(between_linears(gathered, true, false), only("unit-switch")).empty());
  EXPECT_TRUE(found(between_linears(gathered, true, true, "fp32"), only("unit-switch")).empty());
}

/// How often a function is planned while lint looks at a model.
int64_t count_plans(const ModelSource& model, const std::string& rule) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "lint.pftrace";
  {
    const Trace trace(path);
    report(model, only(rule));
  }
  int64_t count = 0;
  for (const TraceGroup& g : summarize_trace(path).groups)
    if (g.lane == "Activity" && g.name == "plan") count += g.count;
  return count;
}

TEST(Dispatch, OnlyARuleThatAsksTheNeuralEngineCausesAPlanForIt) {
  const ModelSource model = between_linears(gathered);
  EXPECT_EQ(count_plans(model, "unit-switch"), count_plans(model, "transpose-pair") + 1);
}

Value there_and_back(ProgramBuilder& b, Value x, const Middle& middle, std::vector<int> back) {
  const Value there = b.op("transpose", {{"x", x}, {"perm", std::vector<int>{1, 0}}}, "there");
  return b.op("transpose", {{"x", middle(b, there)}, {"perm", std::move(back)}}, "back");
}

TEST(Dispatch, TransposesUndoEachOtherAroundActivations) {
  const ModelSource model = between_linears([](ProgramBuilder& b, Value x) {
    const Middle scaled = [](ProgramBuilder& p, Value v) {
      return p.op("mul", {{"x", p.op("tanh", {{"x", v}})}, {"y", p.constant(array({3}, {1}), "fp16")}}, "scaled");
    };
    return there_and_back(b, x, scaled, {-1, -2});
  });
  EXPECT_TRUE(finds(report(model), "transpose-pair", "'back'", kWarning));
}

TEST(Dispatch, TransposesAroundWhatNeedsThemAreFine) {
  const Middle softmax = [](ProgramBuilder& b, Value v) { return b.op("softmax", {{"x", v}, {"axis", -1}}); };
  const Middle square = [](ProgramBuilder& b, Value v) { return b.op("relu", {{"x", v}}); };
  const Middle read_twice = [](ProgramBuilder& b, Value v) {
    const Value y = b.op("relu", {{"x", v}});
    b.output(b.op("cast", {{"x", y}, {"dtype", "fp32"}}, "other"));
    return y;
  };
  EXPECT_TRUE(found(between_linears([&](auto& b, Value x) { return there_and_back(b, x, softmax, {1, 0}); })).empty());
  EXPECT_TRUE(found(between_linears([&](auto& b, Value x) {
                return there_and_back(b, x, read_twice, {1, 0});
              })).empty());
  const ModelSource same_order = between_linears([&](auto& b, Value x) {
    return b.op(
        "reshape",
        {{"x", there_and_back(b, b.op("reshape", {{"x", x}, {"shape", std::vector<int>{8, 8}}}), square, {0, 1})},
         {"shape", std::vector<int>{4, 16}}});
  });
  EXPECT_TRUE(found(same_order, only("transpose-pair")).empty());
}

}  // namespace
}  // namespace moka::lint_test
