// SPDX-License-Identifier: Apache-2.0
#include "edit_util.h"

namespace moka::edit_test {
namespace {

TEST(Rename, FeaturesOfAProgram) {
  const ModelSource before = program();
  const ModelSource after = edit::rename_features(before, {{"x", "image"}, {"y", "scores"}});
  EXPECT_EQ(predict(after, {{"image", kInput}}, "scores"), relu(middle_of(kX)));
  EXPECT_EQ(predict(before, {{"x", kInput}}, "y"), relu(middle_of(kX)));  // unchanged
}

TEST(Rename, ANameOfAnInnerValueIsFreed) {
  const ModelSource after = edit::rename_features(program(), {{"y", "middle"}});
  EXPECT_EQ(predict(after, {{"x", kInput}}, "middle"), relu(middle_of(kX)));
}

TEST(Rename, TheNewNameOfAnInnerValueIsFreeOfAllNewNames) {
  ProgramBuilder b("ios17");
  const auto x = b.input("x", DataType::float32, {1, 4}), z = b.input("z", DataType::float32, {1, 4});
  const auto middle = b.op("mul", {{"x", x}, {"y", 2.0f}}, "middle");
  b.output(b.op("sub", {{"x", middle}, {"y", z}}, "y"));
  const ModelSource after = edit::rename_features(b.source(), {{"x", "middle"}, {"z", "middle_1"}});
  const MultiArray ones = array({1, 1, 1, 1}, {1, 4});
  EXPECT_EQ(predict(after, {{"middle", kInput}, {"middle_1", ones}}, "y"), (std::vector<float>{1, -5, 5, 0}));
  const ModelSource net = edit::rename_features(network(), {{"x", "middle"}, {"y", "middle_1"}});
  EXPECT_EQ(predict(net, {{"middle", array(kX, {4})}}, "middle_1"), relu(middle_of(kX)));
}

TEST(Rename, FeaturesSwapNames) {
  ProgramBuilder b("ios17");
  const auto x = b.input("x", DataType::float32, {1, 4}), y = b.input("y", DataType::float32, {1, 4});
  b.output(b.op("sub", {{"x", x}, {"y", y}}, "z"));
  const ModelSource after = edit::rename_features(b.source(), {{"x", "y"}, {"y", "x"}});
  const MultiArray ones = array({1, 1, 1, 1}, {1, 4});
  EXPECT_EQ(predict(after, {{"y", kInput}, {"x", ones}}, "z"), (std::vector<float>{0, -3, 2, -0.5f}));
}

TEST(Rename, FeaturesOfANetwork) {
  const ModelSource after = edit::rename_features(network(), {{"x", "middle"}, {"y", "scores"}});
  EXPECT_EQ(predict(after, {{"middle", array(kX, {4})}}, "scores"), relu(middle_of(kX)));
}

TEST(Rename, FeaturesOfAPipelineThroughItsStages) {
  ModelDescription d;
  d.specification_version = 7;
  d.functions.resize(1);
  d.functions[0].inputs = program().load().description().functions[0].inputs;
  d.functions[0].outputs = program().load().description().functions[0].outputs;
  d.functions[0].outputs[0].name = "again";
  Message model = describe_model(d);
  model.add("pipeline");
  ModelSource joined(model);
  joined.add_stage(program(), "first");
  ProgramBuilder b("ios16");
  const auto y = b.input("y", DataType::float32, {1, 3});
  b.output(b.op("add", {{"x", y}, {"y", 1.0f}}, "again"));
  joined.add_stage(b.source(), "second");
  std::vector<float> expected = relu(middle_of(kX));
  for (float& v : expected) v += 1;
  EXPECT_EQ(predict(joined, {{"x", kInput}}, "again"), expected);
  // "y" is the name of what the first stage hands to the second.
  const ModelSource after = edit::rename_features(joined, {{"x", "input"}, {"again", "y"}});
  EXPECT_EQ(predict(after, {{"input", kInput}}, "y"), expected);
}

TEST(Rename, OperationsAndValues) {
  ModelSource after = edit::rename_values(program(), {{"middle", "scores"}});
  after = edit::rename_operations(after, {{"y", "activation"}});
  EXPECT_EQ(predict(after, {{"x", kInput}}, "y"), relu(middle_of(kX)));
  const std::string bytes = [&] {
    const auto data = after.specification().serialize();
    return std::string(reinterpret_cast<const char*>(data.data()), data.size());
  }();
  EXPECT_NE(bytes.find("scores"), std::string::npos);
  EXPECT_NE(bytes.find("activation"), std::string::npos);
  const ModelSource net = edit::rename_operations(edit::rename_values(network(), {{"middle", "m"}}), {{"dense", "d"}});
  EXPECT_EQ(predict(net, {{"x", array(kX, {4})}}, "y"), relu(middle_of(kX)));
}

TEST(Rename, MistakesAreNamed) {
  const ModelSource model = program();
  EXPECT_EQ(message_of([&] {
              edit::rename_features(model, {{"z", "a"}});
            }),
            "the model has no input or output 'z'; it has: x, y");
  EXPECT_EQ(message_of([&] {
              edit::rename_features(model, {{"y", "a"}}, edit::Side::inputs);
            }),
            "the model has no input 'y'; it has: x");
  EXPECT_EQ(message_of([&] {
              edit::rename_features(model, {{"y", "x"}});
            }),
            "rename 'y': the program has an input and an output that would be called 'x'");
  EXPECT_EQ(message_of([&] {
              edit::rename_features(model, {{"y", "1 a"}});
            }),
            "rename 'y': expected a name of letters, digits and underscores that begins with no digit, got '1 a'");
  EXPECT_EQ(message_of([&] {
              edit::rename_values(model, {{"x", "a"}});
            }),
            "rename value 'x': it is a feature; rename the feature");
  ProgramBuilder b("ios17");
  const auto x = b.input("x", DataType::float32, {1, 4});
  const auto p = b.op("exp", {{"x", x}}, "p"), q = b.op("relu", {{"x", x}}, "q");
  b.output(b.op("sub", {{"x", p}, {"y", q}}, "y"));
  EXPECT_EQ(message_of([&] {
              edit::rename_values(b.source(), {{"p", "r"}, {"q", "r"}});
            }),
            "rename value 'p': expected a free name of letters, digits and underscores, got 'r'");
  ModelSource net = network();
  Message layer = net.specification().at("neuralNetwork").add("layers");
  layer.set("name", "more").set("input", "middle").set("output", "other");
  layer.add("activation").add("ReLU");
  EXPECT_EQ(message_of([&] {
              edit::rename_values(net, {{"middle", "r"}, {"other", "r"}});
            }),
            "rename value 'middle': the network has another value 'r'");
  EXPECT_EQ(message_of([&] { edit::rename_operations(model, {{"w", "a"}}); }), "the model has no operation 'w'");
}

}  // namespace
}  // namespace moka::edit_test
