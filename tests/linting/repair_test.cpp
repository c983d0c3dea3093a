// SPDX-License-Identifier: Apache-2.0
#include "lint_util.h"

namespace moka::lint_test {
namespace {

/// x [1, 64] -> two linears with equal weights -> sum -> y, with parts that do nothing.
ModelSource wasteful() {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 64});
  const MultiArray weight = noise({64, 64}), copy = noise({64, 64}), unused = noise({64, 64}, 1, 5);
  const Value p = b.op("linear", {{"x", x}, {"weight", b.constant(weight, "fp32", "w")}}, "p");
  const Value q =
      b.op("linear", {{"x", b.op("relu", {{"x", x}}, "relu")}, {"weight", b.constant(copy, "fp32", "w_again")}}, "q");
  const Value same = b.op("mul", {{"x", q}, {"y", 1.0f}}, "times_one");
  const Value twice = b.op("relu", {{"x", p}}, "r1"), again = b.op("relu", {{"x", p}}, "r2");
  b.op("linear", {{"x", x}, {"weight", b.constant(unused, "fp32", "u")}}, "dead");
  const Value sum = b.op("add", {{"x", same}, {"y", b.op("add", {{"x", twice}, {"y", again}})}}, "y");
  b.output(sum);
  return b.source();
}

TEST(Repair, FindsWhatIsWasted) {
  const lint::Report r = report(wasteful());
  EXPECT_TRUE(finds(r, "duplicate-weight", "'w_again", kWarning));
  EXPECT_TRUE(finds(r, "idle-operation", "'times_one'", kWarning));
  EXPECT_TRUE(finds(r, "duplicate-operation", "'r2'", lint::Level::note));
  EXPECT_TRUE(finds(r, "unused-operation", "'dead'", kWarning));
  EXPECT_EQ(r.findings.size(), 4u);
}

TEST(Repair, TheRepairedModelAnswersTheSame) {
  const ModelSource before = wasteful();
  const Saved saved(before);
  const lint::Repair repair = lint::fix(saved.path);
  EXPECT_EQ(repair.done.size(), 4u);
  EXPECT_TRUE(found(repair.model).empty());
  EXPECT_LT(repair.model.weight_file("weights/weight.bin").count(),
            before.weight_file("weights/weight.bin").count() / 2);
  Features inputs;
  inputs["x"] = noise({1, 64}, 1, 9);
  const Features a = before.load().predict(inputs), b = repair.model.load().predict(inputs);
  const auto &p = std::get<MultiArray>(a.at("y")), &q = std::get<MultiArray>(b.at("y"));
  for (int64_t i = 0; i < p.count(); ++i) EXPECT_FLOAT_EQ(p.at(i), q.at(i));
}

/// x [2, 3, 4] -> transpose -> tanh -> * y -> transpose back -> softmax -> y.
ModelSource between_transposes(const MultiArray& factor) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {2, 3, 4});
  Value y = b.op("transpose", {{"x", x}, {"perm", std::vector<int>{1, 2, 0}}}, "there");
  y = b.op("mul", {{"x", b.op("tanh", {{"x", y}}, "tanh")}, {"y", b.constant(factor, "fp32")}}, "scaled");
  y = b.op("transpose", {{"x", y}, {"perm", std::vector<int>{-1, 0, 1}}}, "back");
  b.output(b.op("softmax", {{"x", y}, {"axis", -1}}, "y"));
  return b.source();
}

TEST(Repair, TransposesAroundElementwiseOperationsGo) {
  const ModelSource before = between_transposes(array({2}, {1}));
  const Saved saved(before);
  const lint::Repair repair = lint::fix(saved.path);
  ASSERT_EQ(repair.done.size(), 1u);
  EXPECT_EQ(repair.done[0].second, "dropped 1 pair of transposes around elementwise operations");
  EXPECT_TRUE(found(repair.model).empty());
  const Model after = repair.model.load();
  const ModelStructure structure = after.structure();
  std::vector<std::string> left;
  for (const auto& op : structure.functions[0].body.operations)
    if (op.type != "const") left.push_back(op.type + " " + op.outputs[0].second);
  EXPECT_EQ(left, (std::vector<std::string>{"tanh tensor<fp32, [2, 3, 4]>", "mul tensor<fp32, [2, 3, 4]>",
                                            "softmax tensor<fp32, [2, 3, 4]>"}));
  Features inputs;
  inputs["x"] = noise({2, 3, 4}, 1, 9);
  const Features a = before.load().predict(inputs), b = after.predict(inputs);
  const auto &p = std::get<MultiArray>(a.at("y")), &q = std::get<MultiArray>(b.at("y"));
  for (int64_t i = 0; i < p.count(); ++i) EXPECT_FLOAT_EQ(p.at(i), q.at(i));
}

TEST(Repair, TransposesAroundAConstantOfTheirShapeStay) {
  const Saved saved(between_transposes(array({2, 2, 2}, {3, 1, 1})));
  EXPECT_TRUE(lint::fix(saved.path).done.empty());
}

TEST(Repair, AChainOfTransposesLosesOnePair) {
  ProgramBuilder b("ios17");
  Value y = b.input("x", DataType::float32, {2, 3});
  for (const char* name : {"one", "two", "three"})
    y = b.op("relu", {{"x", b.op("transpose", {{"x", y}, {"perm", std::vector<int>{1, 0}}}, name)}});
  b.output(b.op("exp", {{"x", y}}, "y"));
  const Saved saved(b.source());
  const lint::Repair repair = lint::fix(saved.path);
  ASSERT_EQ(repair.done.size(), 1u);
  EXPECT_EQ(repair.model.load().description().functions[0].outputs[0].array.shape, (std::vector<int64_t>{3, 2}));
}

/// Merging the two first transposes gives the remaining one another reader, so the pair around relu must stay.
TEST(Repair, AFixLooksAtWhatEarlierFixesLeft) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {2, 3});
  const auto transposed = [&](const Value& v, const char* name) {
    return b.op("transpose", {{"x", v}, {"perm", std::vector<int>{1, 0}}}, name);
  };
  b.output(b.op("exp", {{"x", transposed(x, "one")}}, "y"));
  const Value again = b.op("relu", {{"x", transposed(x, "same")}});
  b.output(b.op("exp", {{"x", transposed(again, "back")}}, "z"));
  const Saved saved(b.source());
  const lint::Repair repair = lint::fix(saved.path);
  ASSERT_EQ(repair.done.size(), 1u);
  EXPECT_EQ(repair.done[0].first, "duplicate-operation");
  EXPECT_EQ(repair.model.load().description().functions[0].outputs[1].array.shape, (std::vector<int64_t>{2, 3}));
}

TEST(Repair, OnlyChosenRulesRepair) {
  const Saved saved(wasteful());
  lint::Options options;
  options.only = {"idle-operation"};
  const lint::Repair repair = lint::fix(saved.path, options);
  ASSERT_EQ(repair.done.size(), 1u);
  EXPECT_EQ(repair.done[0].first, "idle-operation");
  EXPECT_TRUE(finds(report(repair.model), "duplicate-weight", "'w_again", kWarning));
}

TEST(Repair, IdleOperationsInARowGo) {
  ProgramBuilder b("ios17");
  Value y = b.input("x", DataType::float32, {1, 8});
  for (const char* name : {"c", "a", "b"}) y = b.op("add", {{"x", y}, {"y", 0.0f}}, name);
  b.output(b.op("exp", {{"x", y}}, "y"));
  const Saved saved(b.source());
  const lint::Repair repair = lint::fix(saved.path);
  ASSERT_EQ(repair.done.size(), 1u);
  EXPECT_EQ(repair.done[0].second, "dropped 3 operations that change nothing");
  EXPECT_TRUE(found(repair.model).empty());
}

TEST(Repair, RandomNumbersAreNotCompared) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {8});
  b.op("exp", {{"x", x}}, "dead");
  const Value random =
      b.op("random_uniform", {{"shape", std::vector<int>{8}}, {"low", 0.0f}, {"high", 1.0f}, {"seed", -1}}, "random");
  b.output(b.op("add", {{"x", x}, {"y", random}}, "y"));
  const Saved saved(b.source());
  const lint::Repair repair = lint::fix(saved.path);
  ASSERT_EQ(repair.done.size(), 1u);
  EXPECT_EQ(repair.done[0].first, "unused-operation");
}

TEST(Repair, TheVersionIsRaised) {
  ProgramBuilder b("ios17");
  b.output(b.op("relu", {{"x", b.input("x", DataType::float16, {1, 8})}}, "y"));
  const ModelSource model = b.source();
  model.specification().set("specificationVersion", 6);
  const Saved saved(model);
  const lint::Repair repair = lint::fix(saved.path);
  ASSERT_EQ(repair.done.size(), 1u);
  EXPECT_EQ(repair.done[0].second, "raised the specification version to 8");
  EXPECT_TRUE(found(repair.model).empty());
}

TEST(Repair, WordsOfTheCompilerAreRenamed) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8});
  const Value first = b.op("relu", {{"x", x}}, "tensor"), second = b.op("tanh", {{"x", x}}, "tensor_1");
  b.output(b.op("add", {{"x", first}, {"y", second}}, "y"));
  b.output(b.op("exp", {{"x", x}}, "state"));
  const Saved saved(b.source());
  const lint::Repair repair = lint::fix(saved.path);
  ASSERT_EQ(repair.done.size(), 1u);
  EXPECT_EQ(repair.done[0].second, "renamed the value 'tensor' to 'tensor_2'");
  EXPECT_EQ(found(repair.model), (std::vector<std::string>{"error value-name value 'state'"}));
  Features inputs;
  inputs["x"] = noise({1, 8}, 1, 9);
  const Features before = b.source().load().predict(inputs), after = repair.model.load().predict(inputs);
  for (const char* name : {"y", "state"})
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(std::get<MultiArray>(before.at(name)).at(i), std::get<MultiArray>(after.at(name)).at(i));
}

TEST(Repair, WhatIsNotFoundStays) {
  ProgramBuilder b("ios17");
  Value x = b.input("x", DataType::float32, {1, 16});
  for (const char* name : {"p", "q"})
    x = b.op("linear", {{"x", x}, {"weight", b.constant(noise({16, 16}), "fp32")}}, name);
  b.output(x);
  const Saved saved(b.source());
  EXPECT_TRUE(lint::check(saved.path).findings.empty());
  EXPECT_TRUE(lint::fix(saved.path).done.empty());  // the weights are equal, but small
}

TEST(Repair, ACleanModelStays) {
  ProgramBuilder b("ios17");
  b.output(b.op("relu", {{"x", b.input("x", DataType::float32, {1, 8})}}, "y"));
  const Saved saved(b.source());
  EXPECT_TRUE(lint::fix(saved.path).done.empty());
}

TEST(Options, MistakesAreNamed) {
  ProgramBuilder b("ios17");
  b.output(b.op("relu", {{"x", b.input("x", DataType::float32, {1, 8})}}, "y"));
  const Saved saved(b.source());
  const auto message_of = [&](const lint::Options& options) -> std::string {
    try {
      lint::check(saved.path, options);
    } catch (const Exception& e) {
      return e.kind() == ErrorKind::invalid_argument ? e.what() : "another kind";
    }
    return "none";
  };
  lint::Options rule, target, range, function;
  rule.only = {"no-such-rule"};
  target.target = "ios99";
  range.ranges["z"] = {0, 1};
  function.function = "other";
  EXPECT_EQ(message_of(rule).substr(0, 37), "rule 'no-such-rule': expected one of ");
  EXPECT_EQ(message_of(target).substr(0, 32), "target 'ios99': expected one of ");
  EXPECT_EQ(message_of(range), "range of 'z': not an array input of the model");
  EXPECT_EQ(message_of(function), "function 'other': the model has none of that name");
}

}  // namespace
}  // namespace moka::lint_test
