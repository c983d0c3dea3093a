// SPDX-License-Identifier: Apache-2.0
#include "edit_util.h"

namespace moka::edit_test {
namespace {

/// x [1, 3, 8, 8] -> conv 3 x 3 with padding and ones -> mean of each channel "y" [1, 2], and "z" = relu of conv.
ModelSource picture_net() {
  ProgramBuilder b("ios16");
  const auto x = b.input("x", DataType::float32, {1, 3, 8, 8});
  const auto c =
      b.op("conv", {{"x", x}, {"weight", array(std::vector<float>(54, 1), {2, 3, 3, 3})}, {"pad_type", "same"}});
  b.output(b.op("reduce_mean", {{"x", c}, {"axes", std::vector<int>{2, 3}}}, "y"));
  b.output(b.op("relu", {{"x", c}}, "z"));
  return b.source();
}

/// The mean of the convolution of ones: each pixel is counted once per window that it is in.
float mean_of(int64_t h, int64_t w) {
  const auto windows = [](int64_t n) { return static_cast<float>(3 * n - 2); };
  constexpr float channels = 3;
  return channels * windows(h) * windows(w) / static_cast<float>(h * w);
}

std::vector<int64_t> shape_of(const ModelSource& model, const std::vector<int64_t>& input) {
  const MultiArray x = array(std::vector<float>(static_cast<size_t>(3 * input[2] * input[3]), 1), input);
  const Features out = model.load().predict({{"x", x}});
  EXPECT_NEAR(numbers(out.at("y"))[0], mean_of(input[2], input[3]), 1e-5);
  return std::get<MultiArray>(out.at("z")).shape();
}

TEST(Sizes, RangesAndShapesOfAProgram) {
  const ModelSource ranges = edit::set_sizes(picture_net(), {{"x", {{{1, 1}, {3, 3}, {4, 16}, {4, -1}}, {}}}});
  for (const auto& shape : {std::vector<int64_t>{1, 3, 8, 8}, {1, 3, 4, 32}, {1, 3, 16, 5}})
    EXPECT_EQ(shape_of(ranges, shape), (std::vector<int64_t>{1, 2, shape[2], shape[3]}));
  EXPECT_NE(message_of([&] { shape_of(ranges, {1, 3, 17, 8}); }), "");
  const ModelSource listed = edit::set_sizes(ranges, {{"x", {{}, {{1, 3, 6, 6}, {1, 3, 12, 12}}}}});
  EXPECT_EQ(shape_of(listed, {1, 3, 12, 12}), (std::vector<int64_t>{1, 2, 12, 12}));
  EXPECT_NE(message_of([&] { shape_of(listed, {1, 3, 8, 8}); }), "");
  const Model loaded = listed.load();
  EXPECT_EQ(loaded.description().functions[0].inputs[0].array.shape, (std::vector<int64_t>{1, 3, 6, 6}));
  // Fixed again, the program is as it was.
  const ModelSource fixed = edit::set_sizes(listed, {{"x", {{}, {{1, 3, 8, 8}}}}});
  EXPECT_EQ(fixed.load().description().functions[0].outputs[1].array.shape, (std::vector<int64_t>{1, 2, 8, 8}));
  EXPECT_EQ(fixed.specification().at("mlProgram").serialize(),
            picture_net().specification().at("mlProgram").serialize());
}

TEST(Sizes, OfAnImage) {
  const ModelSource model = edit::set_sizes(edit::set_image(picture_net(), "x", {}), {{"x", {{{4, 64}, {4, 64}}, {}}}});
  Image image(5, 9, PixelFormat::rgb8);
  for (int64_t i = 0; i < 9 * image.row_bytes; ++i) image.pixels.get()[i] = 1;
  EXPECT_EQ(std::get<MultiArray>(model.load().predict({{"x", image}}).at("z")).shape(),
            (std::vector<int64_t>{1, 2, 9, 5}));
}

TEST(Sizes, InputsThatDependOnEachOther) {
  ProgramBuilder b("ios16");
  const auto x = b.input("x", DataType::float32, {1, 4}), y = b.input("y", DataType::float32, {1, 4});
  b.output(b.op("add", {{"x", x}, {"y", y}}, "z"));
  const edit::InputSizes sizes{{{1, 1}, {2, 8}}, {}};
  const ModelSource model = edit::set_sizes(b.source(), {{"x", sizes}, {"y", sizes}});
  EXPECT_EQ(predict(model, {{"x", array({1, 2}, {1, 2})}, {"y", array({3, 4}, {1, 2})}}, "z"),
            (std::vector<float>{4, 6}));
  EXPECT_NE(message_of([&] {
              edit::set_sizes(b.source(), {{"x", {{}, {{1, 5}}}}});
            }).find("operation 'z'"),
            std::string::npos);
}

TEST(Sizes, OfANetwork) {
  // A dense layer takes one length only.
  EXPECT_NE(message_of([] {
              edit::set_sizes(network(), {{"x", {{{2, 8}}, {}}}});
            }).find("with x [2]"),
            std::string::npos);
  ModelDescription d;
  d.specification_version = 4;
  d.functions.resize(1);
  FeatureDescription f;
  f.name = "x";
  f.array.shape = {3, 4, 4};
  d.functions[0].inputs = {f};
  f.name = "y";
  f.array.shape = {};
  d.functions[0].outputs = {f};
  Message spec = describe_model(d);
  Message network = spec.add("neuralNetwork");
  network.add("layers").set("name", "a").set("input", "x").set("output", "y").add("activation").add("ReLU");
  const ModelSource model = edit::set_sizes(ModelSource(spec), {{"x", {{{3, 3}, {2, 9}, {4, 4}}, {}}}});
  const Features out = model.load().predict({{"x", array(std::vector<float>(60, -1), {3, 5, 4})}});
  EXPECT_EQ(numbers(out.at("y")), std::vector<float>(60, 0));
  EXPECT_NE(message_of([&] { model.load().predict({{"x", array(std::vector<float>(12, 1), {3, 1, 4})}}); }), "");
}

TEST(Sizes, MistakesAreNamed) {
  const ModelSource model = picture_net();
  EXPECT_EQ(message_of([&] {
              edit::set_sizes(model, {{"x", {}}});
            }),
            "'x': expected ranges or enumerated shapes, got none");
  EXPECT_EQ(message_of([&] {
              edit::set_sizes(model, {{"x", {{{1, 1}}, {}}}});
            }),
            "'x': expected sizes for 4 dimensions, got 1");
  EXPECT_EQ(message_of([&] {
              edit::set_sizes(model, {{"x", {{}, {{1, 3, 8}}}}});
            }),
            "'x': expected shapes of 4 dimensions, got [1, 3, 8]");
  EXPECT_NE(message_of([&] { edit::set_sizes(model, {{"x", {{}, {{1, 4, 8, 8}}}}}); }).find("conv"), std::string::npos);
}

TEST(Cut, ANetwork) {
  const std::vector<float> x = {1, -2, 3, 0.5f};
  EXPECT_EQ(predict(edit::cut(network(), {}, {"middle"}), {{"x", array(x, {4})}}, "middle"), middle_of(x));
  EXPECT_EQ(predict(edit::cut(network(), {}, {"dense"}), {{"x", array(x, {4})}}, "middle"), middle_of(x));
  const ModelSource tail = edit::cut(network(), {"middle"}, {});
  EXPECT_EQ(predict(tail, {{"middle", array({1, -2, 3}, {3})}}, "y"), (std::vector<float>{1, 0, 3}));
  EXPECT_LT(tail.specification().serialize().size(), network().specification().serialize().size());
  const ModelSource classes = edit::set_labels(network(), std::vector<std::string>{"a", "b", "c"});
  EXPECT_EQ(predict(edit::cut(classes, {}, {"y"}), {{"x", array(x, {4})}}, "y"), relu(middle_of(x)));
  EXPECT_EQ(message_of([] { edit::cut(network(), {}, {"nothing"}); }), "the network has no value or layer 'nothing'");
}

}  // namespace
}  // namespace moka::edit_test
