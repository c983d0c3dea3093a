// SPDX-License-Identifier: Apache-2.0
#include "edit_util.h"

namespace moka::edit_test {
namespace {

const std::vector<std::string> kLabels = {"cat", "dog", "cow"};

void expect_classifies(const ModelSource& model, const MultiArray& x) {
  const Model loaded = model.load();
  const Features out = loaded.predict({{"x", x}});
  const std::vector<float> expected = relu(middle_of(kX));
  const size_t best = static_cast<size_t>(std::max_element(expected.begin(), expected.end()) - expected.begin());
  EXPECT_EQ(std::get<std::string>(out.at("classLabel")), kLabels[best]);
  EXPECT_EQ(loaded.description().class_labels, kLabels);
}

TEST(Labels, OfAProgramAndBack) {
  const ModelSource model = edit::set_labels(program(), kLabels);
  expect_classifies(model, array(kX, {1, 4}));
  const ModelSource back = edit::remove_labels(model);
  EXPECT_EQ(predict(back, {{"x", array(kX, {1, 4})}}, "y"), relu(middle_of(kX)));
}

// coremltools' `classify` takes probabilities of float32 only.
TEST(Labels, OfHalves) {
  const ModelSource model = edit::set_labels(edit::set_type(program(), "y", "float16"), kLabels);
  expect_classifies(model, array(kX, {1, 4}));
  const ModelSource back = edit::remove_labels(model);
  EXPECT_EQ(back.load().description().functions[0].outputs[0].array.type, DataType::float32);
  EXPECT_EQ(predict(back, {{"x", array(kX, {1, 4})}}, "y"), relu(middle_of(kX)));
}

TEST(Labels, OfANetworkAndBack) {
  const ModelSource model = edit::set_labels(network(), kLabels);
  expect_classifies(model, array(kX, {4}));
  const ModelSource back = edit::remove_labels(model);
  EXPECT_EQ(predict(back, {{"x", array(kX, {4})}}, "y"), relu(middle_of(kX)));
}

TEST(Labels, AreReplaced) {
  for (const ModelSource& before : {program(), network()}) {
    const MultiArray x = array(kX, before.load().description().functions[0].inputs[0].array.shape);
    const ModelSource model =
        edit::set_labels(edit::set_labels(before, std::vector<std::string>{"1", "2", "3"}), kLabels);
    expect_classifies(model, x);
  }
  const ModelSource numbers = edit::set_labels(edit::set_labels(program(), kLabels), std::vector<int64_t>{7, 8, 9});
  const std::vector<float> expected = relu(middle_of(kX));
  const auto best = std::max_element(expected.begin(), expected.end()) - expected.begin();
  EXPECT_EQ(std::get<int64_t>(numbers.load().predict({{"x", array(kX, {1, 4})}}).at("classLabel")), 7 + best);
}

TEST(Labels, OfTheLastModelOfAPipelineAreReplaced) {
  ProgramBuilder b("ios16");
  b.output(b.op("identity", {{"x", b.input("y", DataType::float32, {1, 3})}}, "z"));
  const ModelSource joined = edit::join({{"one", program()}, {"two", edit::set_labels(b.source(), kLabels)}});
  const ModelSource model = edit::set_labels(joined, std::vector<int64_t>{7, 8, 9});
  const std::vector<float> expected = relu(middle_of(kX));
  const auto best = std::max_element(expected.begin(), expected.end()) - expected.begin();
  EXPECT_EQ(std::get<int64_t>(model.load().predict({{"x", kInput}}).at("classLabel")), 7 + best);
}

TEST(Labels, MistakesAreNamed) {
  EXPECT_EQ(message_of([] {
              edit::set_labels(program(), std::vector<std::string>{"a", "b"});
            }),
            "labels: expected one for each of the 3 elements of 'y', got 2");
  EXPECT_EQ(message_of([] {
              edit::set_labels(program(), std::vector<std::string>{"a", "b", "a"});
            }),
            "labels: expected different ones, got one twice");
  EXPECT_EQ(message_of([] { edit::remove_labels(program()); }), "expected a classifier, got an ML program without one");
  EXPECT_EQ(message_of([] { edit::set_labels(edit::set_labels(network(), kLabels), std::vector<std::string>{"a"}); }),
            "labels: expected 3, as many as the classifier has, got 1");
}

TEST(Strip, SizesStayAndNumbersGo) {
  for (const auto seed : {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    const ModelSource before = program(), model = edit::strip_weights(before, seed);
    EXPECT_EQ(model.weight_file("weights/weight.bin").count(), before.weight_file("weights/weight.bin").count());
    EXPECT_EQ(model.specification().serialize().size(), before.specification().serialize().size());
    // The bias has few elements and stays.
    const std::vector<float> y = predict(edit::cut(model, {}, {"middle"}), {{"x", array(kX, {1, 4})}}, "middle");
    EXPECT_EQ(y == (std::vector<float>{0.5f, -1, 2}), !seed.has_value());
    EXPECT_NE(y, middle_of(kX));
    EXPECT_EQ(predict(edit::strip_weights(network(), seed), {{"x", array(kX, {4})}}, "y").size(), 3u);
  }
  EXPECT_EQ(predict(edit::strip_weights(network()), {{"x", array(kX, {4})}}, "y"), (std::vector<float>{0, 0, 0}));
}

TEST(Target, RaisesVersionAndOpset) {
  const ModelSource model = edit::set_target(program("ios15"), "ios18");
  EXPECT_EQ(model.load().description().specification_version, 9);
  EXPECT_EQ(model.load().structure().functions[0].opset, "ios18");
  EXPECT_EQ(predict(model, {{"x", array(kX, {1, 4})}}, "y"), relu(middle_of(kX)));
  EXPECT_EQ(message_of([&] { edit::set_target(model, "ios16"); }),
            "target ios16: the model has specification version 9, which is newer than 7");
}

/// Declares another number of columns for the palettized weight.
void set_columns_of_palette(const ModelSource& model, uint64_t columns) {
  const Message function = model.specification().at("mlProgram").at("functions").at("value");
  for (const Message& op : function.at("block_specializations").at("value").all("operations"))
    if (op.values("type").at(0) == Message::Scalar("constexpr_lut_to_dense"))
      op.at("outputs").at("type").at("tensorType").at("dimensions", 1).at("constant").set("size", columns);
}

TEST(Target, ConvertsPalettesAndSparseWeights) {
  const ModelSource old = ModelSource::open(std::string(MOKA_GOLDEN) + "/boundary/ios16_weights.mlmodel");
  const Features x = {{"x", array({1, 2, 3, 4}, {1, 4})}};
  const std::vector<float> y = {-10, 3, 5, 27};
  EXPECT_EQ(predict(old, x, "y"), y);
  EXPECT_EQ(predict(edit::set_target(old, "ios17"), x, "y"), y);
  const ModelSource model = edit::set_target(old, "ios18");
  EXPECT_EQ(predict(model, x, "y"), y);
  EXPECT_EQ(model.load().structure().functions[0].opset, "ios18");
  set_columns_of_palette(old, 5);
  EXPECT_EQ(message_of([&] { edit::set_target(old, "ios18"); }),
            "operation 'constexpr_lut_to_dense_0' (constexpr_lut_to_dense): expected 5 bytes in 'indices' for 20 "
            "elements of 2 bits, got 4");
}

}  // namespace
}  // namespace moka::edit_test
