// SPDX-License-Identifier: Apache-2.0
#include "edit_util.h"

namespace moka::edit_test {
namespace {

/// y [1, 3], and b [1, 3] if `second_input` -> y * 2 (+ b) -> "z".
ModelSource after(DataType type = DataType::float32, bool second_input = false, const std::string& opset = "ios16") {
  ProgramBuilder b(opset);
  const auto y = b.input("y", type, {1, 3});
  auto z = b.op("add", {{"x", y}, {"y", y}}, "middle");  // a name that the first model also uses
  if (second_input) z = b.op("add", {{"x", z}, {"y", b.input("b", type, {1, 3})}});
  b.output(b.op("identity", {{"x", z}}, "z"));
  return b.source();
}

std::vector<float> doubled(std::vector<float> x) {
  for (float& v : x) v *= 2;
  return x;
}

std::vector<std::string> names(const std::vector<FeatureDescription>& features) {
  std::vector<std::string> out;
  for (const auto& f : features) out.push_back(f.name);
  return out;
}

TEST(Join, ModelsRunOneAfterTheOther) {
  const ModelSource joined = edit::join({{"one", program()}, {"two", after(DataType::float32, true)}});
  const FunctionDescription f = joined.load().description().functions[0];
  EXPECT_EQ(names(f.inputs), (std::vector<std::string>{"x", "b"}));
  EXPECT_EQ(names(f.outputs), (std::vector<std::string>{"z"}));
  std::vector<float> expected = doubled(relu(middle_of(kX)));
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<float>(i);
  EXPECT_EQ(predict(joined, {{"x", kInput}, {"b", array({0, 1, 2}, {1, 3})}}, "z"), expected);
}

TEST(Join, AStageComesBackOut) {
  const ModelSource pair = edit::join({{"one", program()}, {"two", after()}});
  EXPECT_EQ(predict(edit::extract_stage(pair, "one"), {{"x", kInput}}, "y"), relu(middle_of(kX)));
  EXPECT_EQ(predict(edit::extract_stage(pair, "1"), {{"y", array({1, 2, 3}, {1, 3})}}, "z"),
            (std::vector<float>{2, 4, 6}));
  EXPECT_TRUE(edit::extract_stage(pair, "1").weight_files().empty());
  EXPECT_EQ(message_of([&] { edit::extract_stage(pair, "three"); }),
            "the pipeline has no stage 'three'; it has: one, two");
}

TEST(Join, NetworksAndClassifiers) {
  const std::vector<std::string> labels = {"cat", "dog", "cow"};
  const ModelSource net = edit::rename_features(network(), {{"y", "scores"}});
  ProgramBuilder b("ios16");
  b.classify(b.op("softmax", {{"x", b.input("scores", DataType::float32, {3})}, {"axis", -1}}), labels);
  const ModelSource joined = edit::join({{"net", net}, {"classes", b.source()}});
  const Model model = joined.load();
  const std::vector<float> y = relu(middle_of(kX));
  const auto best = static_cast<size_t>(std::max_element(y.begin(), y.end()) - y.begin());
  EXPECT_EQ(std::get<std::string>(model.predict({{"x", array(kX, {4})}}).at("classLabel")), labels[best]);
  EXPECT_EQ(model.structure().type, "pipelineClassifier");
}

TEST(Inline, PipelineBecomesOneProgram) {
  const ModelSource joined = edit::join({{"one", program()}, {"two", after(DataType::float32, true)}});
  const ModelSource one = edit::inline_pipeline(joined);
  EXPECT_EQ(one.load().structure().type, "mlProgram");
  const Features inputs = {{"x", kInput}, {"b", array({5, 6, 7}, {1, 3})}};
  EXPECT_EQ(predict(one, inputs, "z"), predict(joined, inputs, "z"));
}

TEST(Inline, InputsThatNoModelReadsStay) {
  ProgramBuilder b("ios16");
  const auto x = b.input("x", DataType::float32, {3});
  b.input("unread", DataType::float32, {2});
  b.output(b.op("exp", {{"x", b.op("relu", {{"x", x}})}}, "y"));
  const ModelSource pipeline = edit::bisect_into_pipeline(b.source()), one = edit::inline_pipeline(pipeline);
  const Features inputs = {{"x", array({-1, 0, 1}, {3})}, {"unread", array({1, 2}, {2})}};
  EXPECT_EQ(predict(one, inputs, "y"), predict(pipeline, inputs, "y"));
  EXPECT_EQ(one.load().description().functions[0].inputs.size(), 2u);
}

TEST(Inline, OtherElementTypesAndWeights) {
  const ModelSource same = edit::rename_features(program(), {{"x", "z4"}, {"y", "w"}});
  ProgramBuilder b("ios17");
  const auto z = b.input("z", DataType::float32, {1, 3});
  b.output(b.op("pad", {{"x", z}, {"pad", std::vector<int>{0, 0, 0, 1}}, {"mode", "constant"}, {"constant_val", 0.0f}},
                "z4"));
  const ModelSource joined = edit::join(
      {{"one", program()}, {"two", after(DataType::float16, false, "ios17")}, {"pad", b.source()}, {"again", same}});
  const ModelSource one = edit::inline_pipeline(joined);
  std::vector<float> expected = doubled(relu(middle_of(kX)));
  expected.push_back(0);
  expected = relu(middle_of(expected));
  EXPECT_EQ(predict(joined, {{"x", kInput}}, "w"), expected);
  EXPECT_EQ(predict(one, {{"x", kInput}}, "w"), expected);
  // Both models have the same weights, which are stored once.
  ASSERT_EQ(one.weight_files().size(), 1u);
  EXPECT_EQ(one.weight_file("weights/weight.bin").count(), program().weight_file("weights/weight.bin").count());
}

TEST(Functions, AreCombinedAndExtracted) {
  const ModelSource other = edit::rename_features(program(), {{"x", "a"}, {"y", "b"}});
  ModelSource both = edit::add_function(program(), "second", other);
  both = edit::add_function(both, "third", after(), "main");
  EXPECT_EQ(both.weight_file("weights/weight.bin").count(), program().weight_file("weights/weight.bin").count());
  const ModelDescription d = both.load().description();
  EXPECT_EQ(d.default_function, "main");
  EXPECT_EQ(d.specification_version, 9);
  ASSERT_EQ(d.functions.size(), 3u);
  EXPECT_EQ(predict(both, {{"x", kInput}}, "y"), relu(middle_of(kX)));
  ModelConfiguration second;
  second.function_name = "second";
  EXPECT_EQ(numbers(both.load(second).predict({{"a", kInput}}).at("b")), relu(middle_of(kX)));
  EXPECT_EQ(predict(edit::set_default_function(both, "second"), {{"a", kInput}}, "b"), relu(middle_of(kX)));
  const ModelSource third = edit::extract_function(both, "third");
  EXPECT_EQ(predict(third, {{"y", array({1, 2, 3}, {1, 3})}}, "z"), (std::vector<float>{2, 4, 6}));
  EXPECT_TRUE(third.weight_files().empty());
  EXPECT_EQ(message_of([&] { edit::extract_function(both, "fourth"); }),
            "the model has no function 'fourth'; it has: main, second, third");
  EXPECT_EQ(message_of([&] { edit::add_function(both, "second", other); }),
            "the model has a function 'second' already");
}

/// Ten layers x <- relu(W x), 16 wide.
ModelSource deep(bool side_output) {
  ProgramBuilder b("ios16");
  auto x = b.input("x", DataType::float32, {1, 16});
  const auto first = x;
  for (int layer = 0; layer < 10; ++layer) {
    std::vector<float> weight(256);
    for (size_t i = 0; i < weight.size(); ++i)
      weight[i] = static_cast<float>((i * 7 + static_cast<size_t>(layer)) % 5) / 16 - 0.125f;
    x = b.op("relu", {{"x", b.op("linear", {{"x", x}, {"weight", array(weight, {16, 16})}})}});
    if (side_output && layer == 2) b.output(x, "side");
  }
  b.output(b.op("add", {{"x", x}, {"y", first}}, "y"));
  return b.source();
}

TEST(Bisect, HalvesGiveTheSameNumbers) {
  std::vector<float> x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 4 - 1;
  for (const bool side : {false, true}) {
    const ModelSource whole = deep(side);
    const auto [first, second] = edit::bisect(whole);
    const auto bytes = [](const ModelSource& m) {
      return static_cast<double>(m.weight_file("weights/weight.bin").count());
    };
    EXPECT_NEAR(bytes(first) / bytes(whole), 0.5, 0.15);
    EXPECT_NEAR(bytes(second) / bytes(whole), 0.5, 0.15);
    const Features inputs = {{"x", array(x, {1, 16})}};
    const Features expected = whole.load().predict(inputs);
    const Features between = first.load().predict(inputs);
    Features read;
    const Model tail = second.load();
    for (const auto& f : tail.description().functions[0].inputs)
      read[f.name] = f.name == "x" ? inputs.at("x") : between.at(f.name);
    EXPECT_EQ(numbers(tail.predict(read).at("y")), numbers(expected.at("y")));
    const ModelSource joined = edit::bisect_into_pipeline(whole);
    const Features got = joined.load().predict(inputs);
    EXPECT_EQ(got.size(), expected.size());
    for (const auto& [name, value] : expected) EXPECT_EQ(numbers(got.at(name)), numbers(value));
    const ModelSource again = edit::inline_pipeline(joined);
    EXPECT_EQ(predict(again, inputs, "y"), numbers(expected.at("y")));
  }
}

TEST(Join, MistakesAreNamed) {
  EXPECT_EQ(message_of([] {
              edit::join({{"one", program()}, {"two", program()}});
            }),
            "two models compute 'y'; rename one of them");
  EXPECT_EQ(message_of([] { edit::inline_pipeline(program()); }), "expected a pipeline, got an ML program");
  const ModelSource mixed =
      edit::join({{"one", network()}, {"two", edit::rename_features(program(), {{"x", "p"}, {"y", "q"}})}});
  EXPECT_EQ(message_of([&] { edit::inline_pipeline(mixed); }),
            "stage 'one': expected an ML program, got a neural network");
}

}  // namespace
}  // namespace moka::edit_test
