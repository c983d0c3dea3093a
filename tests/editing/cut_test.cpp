// SPDX-License-Identifier: Apache-2.0
#include "edit_util.h"

namespace moka::edit_test {
namespace {

TEST(Cut, AProgramEndsAtAValue) {
  const ModelSource head = edit::cut(program(), {}, {"middle"});
  EXPECT_EQ(predict(head, {{"x", kInput}}, "middle"), middle_of(kX));
}

TEST(Cut, AProgramBeginsAtAValueAndLosesItsWeights) {
  const ModelSource tail = edit::cut(program(), {"middle"}, {});
  EXPECT_EQ(predict(tail, {{"middle", array({1, -2, 3}, {1, 3})}}, "y"), (std::vector<float>{1, 0, 3}));
  EXPECT_TRUE(tail.weight_files().empty());
}

TEST(Cut, WeightsThatAreStillNeededMove) {
  ProgramBuilder b("ios16");
  const auto x = b.input("x", DataType::float32, {1, 16});
  std::vector<float> first(256), second(256);
  for (size_t i = 0; i < first.size(); ++i) {
    first[i] = static_cast<float>(i % 7) - 3;
    second[i] = static_cast<float>(i % 5) - 2;
  }
  const auto a = b.op("linear", {{"x", x}, {"weight", array(first, {16, 16})}}, "a");
  b.output(b.op("linear", {{"x", a}, {"weight", array(second, {16, 16})}}, "b"));
  const ModelSource whole = b.source();
  const ModelSource tail = edit::cut(whole, {"a"}, {"b"}), head = edit::cut(whole, {"x"}, {"a"});
  EXPECT_LT(tail.weight_file("weights/weight.bin").count(), whole.weight_file("weights/weight.bin").count());
  std::vector<float> input(16);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i) - 8;
  const std::vector<float> between = predict(head, {{"x", array(input, {1, 16})}}, "a");
  EXPECT_EQ(predict(tail, {{"a", array(between, {1, 16})}}, "b"), predict(whole, {{"x", array(input, {1, 16})}}, "b"));
}

TEST(Cut, ProbabilitiesOfAClassifierBecomeAnArray) {
  edit::ClassifierNames names;
  names.dictionary = "y";
  const ModelSource classifier = edit::set_labels(network(), std::vector<std::string>{"a", "b", "c"}, names);
  EXPECT_EQ(predict(edit::cut(classifier, {}, {"y"}), {{"x", array(kX, {4})}}, "y"), relu(middle_of(kX)));
}

TEST(Cut, InputsOfANetworkKeepTheirOrder) {
  ModelDescription d;
  d.specification_version = 4;
  d.functions.resize(1);
  FeatureDescription feature;
  feature.array.type = DataType::float32;
  feature.array.shape = {4};
  for (const char* name : {"b", "a"}) {
    feature.name = name;
    d.functions[0].inputs.push_back(feature);
  }
  feature.name = "y";
  d.functions[0].outputs = {feature};
  Message model = describe_model(d);
  Message layer = model.add("neuralNetwork").add("layers");
  const std::vector<Message::Scalar> read{std::string("b"), std::string("a")};
  layer.set("name", "sum").set("input", read).set("output", "y").add("add");
  const ModelSource whole(model);
  const std::vector<FeatureDescription> inputs = edit::cut(whole, {}, {"y"}).load().description().functions[0].inputs;
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "b");
  EXPECT_EQ(inputs[1].name, "a");
}

TEST(Check, OutputsAreWhatIsDescribed) {
  EXPECT_EQ(message_of([] { edit::check(program()); }), "");
  EXPECT_EQ(message_of([] { edit::check(network()); }), "");
  const ModelSource model = program();
  Message type = model.specification().at("description").at("output").at("type");
  type.add("dictionaryType").add("stringKeyType");
  EXPECT_EQ(message_of([&] { edit::check(model); }),
            "output 'y': the model computes tensor<fp32, [1, 3]>, which is not what is described");
}

TEST(Cut, HalfAndBoolValuesBecomeFeaturesThatTheVersionHas) {
  ProgramBuilder b("ios15");
  const auto x = b.input("x", DataType::float32, {1, 4});
  const auto half = b.op("cast", {{"x", x}, {"dtype", "fp16"}}, "half");
  const auto positive = b.op("greater", {{"x", half}, {"y", 0.0f}}, "positive");
  b.output(b.op("cast", {{"x", positive}, {"dtype", "fp32"}}, "y"));
  const ModelSource head = edit::cut(b.source(), {}, {"half", "positive"});
  EXPECT_EQ(predict(head, {{"x", kInput}}, "half"), kX);
  EXPECT_EQ(predict(head, {{"x", kInput}}, "positive"), (std::vector<float>{1, 0, 1, 1}));
  const ModelSource tail = edit::cut(b.source(), {"half"}, {});
  EXPECT_EQ(predict(tail, {{"half", kInput}}, "y"), (std::vector<float>{1, 0, 1, 1}));
}

TEST(Cut, MistakesAreNamed) {
  EXPECT_EQ(message_of([] { edit::cut(program(), {}, {"nothing"}); }),
            "the program has no value or operation 'nothing'");
  EXPECT_EQ(message_of([] { edit::cut(program(), {"y"}, {"middle"}); }),
            "input 'y': nothing between it and the outputs reads it");
  EXPECT_EQ(message_of([] { edit::cut(program(), {"middle"}, {"x"}); }),
            "output 'x': it is an input of the model that is cut out");
}

}  // namespace
}  // namespace moka::edit_test
