// SPDX-License-Identifier: Apache-2.0
#include "edit_util.h"

namespace moka::edit_test {
namespace {

/// x [shape] + 0 -> y: the numbers that the model gets.
ModelSource echo(const std::vector<int64_t>& shape, DataType type = DataType::float32) {
  ProgramBuilder b("ios16");
  const auto x = b.input("x", type, shape);
  b.output(b.op("identity", {{"x", x}}, "y"));
  return b.source();
}

/// 2 x 3 pixels.
Image picture(PixelFormat format) {
  Image image(3, 2, format);
  const size_t channels = format == PixelFormat::gray8 ? 1 : 3;
  for (size_t y = 0; y < 2; ++y)
    for (size_t x = 0; x < 3 * channels; ++x)
      image.pixels.get()[y * static_cast<size_t>(image.row_bytes) + x] =
          static_cast<uint8_t>(10 * (y * 3 * channels + x));
  return image;
}

/// The pixels of `picture`, as planes.
std::vector<float> planes(const std::vector<float>& scale, const std::vector<float>& bias, bool bgr = false) {
  std::vector<float> out;
  for (size_t c = 0; c < 3; ++c)
    for (size_t i = 0; i < 6; ++i)
      out.push_back(static_cast<float>(10 * (i * 3 + (bgr ? 2 - c : c))) * scale[c] + bias[c]);
  return out;
}

TEST(Image, InputOfAProgramWithScaleAndBias) {
  edit::ImageSettings settings{ColorSpace::rgb, {0.5, 0.25, 2}, {-1, 0, 1}};
  ModelSource model = edit::set_image(echo({1, 3, 2, 3}), "x", settings);
  EXPECT_EQ(predict(model, {{"x", picture(PixelFormat::rgb8)}}, "y"), planes({0.5f, 0.25f, 2}, {-1, 0, 1}));
  settings.color = ColorSpace::bgr;
  model = edit::set_image(echo({3, 2, 3}), "x", settings);
  EXPECT_EQ(predict(model, {{"x", picture(PixelFormat::rgb8)}}, "y"), planes({0.5f, 0.25f, 2}, {-1, 0, 1}, true));
}

TEST(Image, InputWithChannelsLastAndHalf) {
  ModelSource model = edit::set_image(echo({1, 2, 3, 3}, DataType::float16), "x", {ColorSpace::rgb, {0.5}, {1}, "hwc"});
  std::vector<float> expected;
  for (int i = 0; i < 18; ++i) expected.push_back(static_cast<float>(10 * i) * 0.5f + 1);
  EXPECT_EQ(predict(model, {{"x", picture(PixelFormat::rgb8)}}, "y"), expected);
}

TEST(Image, GrayInputs) {
  const std::vector<float> expected = {0, 10, 20, 30, 40, 50};
  for (const auto& shape : {std::vector<int64_t>{1, 1, 2, 3}, {1, 2, 3}, {2, 3}, {1, 2, 3, 1}})
    EXPECT_EQ(
        predict(edit::set_image(echo(shape), "x", {ColorSpace::grayscale}), {{"x", picture(PixelFormat::gray8)}}, "y"),
        expected);
}

TEST(Image, OutputOfAProgram) {
  const ModelSource model = edit::set_image(echo({2, 3, 3}), "y", {ColorSpace::rgb, {255}, {0}, "hwc"});
  std::vector<float> numbers;
  for (int i = 0; i < 18; ++i) numbers.push_back(static_cast<float>(i) / 17);
  const Features out = model.load().predict({{"x", array(numbers, {2, 3, 3})}});
  const Image& image = std::get<Image>(out.at("y"));
  ASSERT_EQ(image.width, 3);
  ASSERT_EQ(image.height, 2);
  const size_t bytes = bytes_per_pixel(image.format);
  for (size_t i = 0; i < 18; ++i) {
    const size_t pixel = i / 3, channel = i % 3;
    const size_t at = image.format == PixelFormat::bgra8 ? 2 - channel : channel;
    const uint8_t got = image.pixels.get()[pixel / 3 * static_cast<size_t>(image.row_bytes) + pixel % 3 * bytes + at];
    EXPECT_NEAR(got, 255.0 * static_cast<double>(i) / 17, 0.51) << i;
  }
}

/// x [3, 2, 3] -> linear activation -> y.
ModelSource echo_network(int64_t leading, bool describes_output = true) {
  ModelDescription d;
  d.specification_version = 4;
  d.functions.resize(1);
  FeatureDescription f;
  f.array.shape = leading == 0 ? std::vector<int64_t>{3, 2, 3} : std::vector<int64_t>{leading, 3, 2, 3};
  f.name = "x";
  d.functions[0].inputs = {f};
  f.name = "y";
  if (!describes_output) f.array.shape.clear();
  d.functions[0].outputs = {f};
  Message model = describe_model(d);
  Message network = model.add("neuralNetwork");
  if (leading != 0) network.set("arrayInputShapeMapping", "EXACT_ARRAY_MAPPING");
  Message layer = network.add("layers");
  layer.set("name", "echo").set("input", "x").set("output", "y");
  layer.add("activation").add("linear").set("alpha", Message::Scalar(1.0));
  return ModelSource(model);
}

TEST(Image, InputAndOutputOfANetwork) {
  for (const int64_t leading : {0, 1}) {
    const ModelSource model = edit::set_image(echo_network(leading), "x", {ColorSpace::bgr, {0.5}, {-1, 0, 1}});
    EXPECT_EQ(predict(model, {{"x", picture(PixelFormat::rgb8)}}, "y"), planes({0.5f, 0.5f, 0.5f}, {-1, 0, 1}, true));
  }
  for (const bool describes_output : {true, false}) {
    const ModelSource both =
        edit::set_image(edit::set_image(echo_network(0, describes_output), "x", {ColorSpace::rgb, {1.0 / 255}}), "y",
                        {ColorSpace::rgb, {255}});
    const Features out = both.load().predict({{"x", picture(PixelFormat::rgb8)}});
    const Image& image = std::get<Image>(out.at("y"));
    EXPECT_NEAR(image.pixels.get()[static_cast<size_t>(image.row_bytes)], image.format == PixelFormat::bgra8 ? 110 : 90,
                1);
  }
}

TEST(Normalize, ProgramsAndNetworks) {
  std::vector<float> numbers, expected;
  const float mean[] = {1, 2, 3}, std[] = {2, 4, 8};
  for (size_t i = 0; i < 18; ++i) {
    numbers.push_back(static_cast<float>(i));
    expected.push_back((static_cast<float>(i) - mean[i / 6]) / std[i / 6]);
  }
  ModelSource model = edit::normalize(echo({1, 3, 2, 3}), "x", {1, 2, 3}, {2, 4, 8});
  EXPECT_EQ(predict(model, {{"x", array(numbers, {1, 3, 2, 3})}}, "y"), expected);
  model = edit::normalize(echo_network(0), "x", {1, 2, 3}, {2, 4, 8});
  EXPECT_EQ(predict(model, {{"x", array(numbers, {3, 2, 3})}}, "y"), expected);
  // Pixels first become numbers, then these are normalized.
  model = edit::set_image(edit::normalize(echo({1, 3, 2, 3}), "x", {1, 2, 3}, {2, 4, 8}), "x", {ColorSpace::rgb});
  EXPECT_EQ(predict(model, {{"x", picture(PixelFormat::rgb8)}}, "y"),
            planes({0.5f, 0.25f, 0.125f}, {-0.5f, -0.5f, -0.375f}));
}

TEST(Normalize, AnInputThatABlockInABlockReturns) {
  ProgramBuilder b("ios16");
  const auto x = b.input("x", DataType::float32, {4}), flag = b.input("flag", DataType::float32, {1});
  using Values = std::vector<ProgramBuilder::Value>;
  const auto squeezed = b.op("squeeze", {{"x", flag}, {"axes", std::vector<int>{0}}});
  const auto positive = b.op("greater", {{"x", squeezed}, {"y", 0.0f}}, "positive");
  const auto returned = [&](const Values&) { return Values{x}; };
  const auto other = [&](const Values&) { return Values{b.op("exp", {{"x", x}})}; };
  const auto inner = [&](const Values&) { return b.control("cond", {{"pred", positive}}, {returned, other}, "inner"); };
  b.output(b.control("cond", {{"pred", positive}}, {inner, other}, "y")[0]);
  const ModelSource model = edit::normalize(b.source(), "x", {1}, {2});
  EXPECT_EQ(predict(model, {{"x", array({1, 3, 5, 0}, {4})}, {"flag", array({1}, {1})}}, "y"),
            (std::vector<float>{0, 1, 2, -0.5f}));
}

TEST(Normalize, AnImageOfANetworkComesBeforeItsPreprocessing) {
  const edit::ImageSettings settings{ColorSpace::bgr, {0.5}, {-1, 0, 1}};
  const ModelSource image = edit::set_image(echo_network(0), "x", settings);
  // (pixel - mean) / std * scale + bias
  EXPECT_EQ(predict(edit::normalize(image, "x", {2, 4, 8}, {2, 4, 8}), {{"x", picture(PixelFormat::rgb8)}}, "y"),
            planes({0.25f, 0.125f, 0.0625f}, {-1.5f, -0.5f, 0.5f}, true));
  EXPECT_EQ(predict(edit::normalize(image, "x", {10}, {1}), {{"x", picture(PixelFormat::rgb8)}}, "y"),
            planes({0.5f, 0.5f, 0.5f}, {-6, -5, -4}, true));
}

TEST(Normalize, MistakesAreNamed) {
  const auto of_network = [](std::vector<double> mean, std::optional<int> axis) {
    return message_of([&] { edit::normalize(echo_network(0), "x", mean, {1}, axis); });
  };
  EXPECT_EQ(of_network({1, 2, 3}, 0), "");
  EXPECT_EQ(of_network({1, 2, 3}, 2), "'x': expected channels in the third axis from the end");
  EXPECT_EQ(of_network({1, 2, 3}, 7), "'x': expected an axis with 3 elements, got 7");
  EXPECT_EQ(of_network({std::nan("")}, std::nullopt), "'x': expected finite means and stds");
  const ModelSource subtracts = echo_network(0);
  Message network = subtracts.specification().at("neuralNetwork");
  network.add("preprocessing").set("featureName", "x").add("meanImage");
  EXPECT_EQ(message_of([&] { edit::normalize(subtracts, "x", {1}, {2}); }),
            "'x': the network subtracts a mean image from it");
}

TEST(Image, MistakesAreNamed) {
  EXPECT_EQ(message_of([] {
              edit::set_image(edit::set_image(echo({1, 3, 2, 3}), "x", {ColorSpace::rgb}), "x", {ColorSpace::rgb});
            }),
            "'x': expected an array, got an image");
  EXPECT_EQ(message_of([] {
              edit::set_image(echo({1, 4, 2, 3}), "x", {ColorSpace::grayscale});
            }),
            "'x': expected an array of 1 channel, got the shape [1, 4, 2, 3]");
  EXPECT_EQ(message_of([] {
              edit::set_image(echo({2, 3, 2, 3}), "x", {});
            }),
            "'x': expected an array of one image, with 1 as the first dimension, got the shape [2, 3, 2, 3]");
  EXPECT_EQ(message_of([] {
              edit::set_image(echo({1, 3, 2, 3}), "x", {ColorSpace::rgb, {1, 2}});
            }),
            "'x': expected one number or one for each of 3 channels as scale and bias, got 2");
  EXPECT_EQ(message_of([] {
              edit::set_image(echo_network(0), "x", {ColorSpace::rgb, {1, 2, 3}});
            }),
            "'x': the preprocessing of neural networks has one scale for all channels");
  EXPECT_EQ(message_of([] { edit::normalize(echo({1, 3, 2, 3}), "x", {0}, {0}); }), "'x': expected stds other than 0");
  EXPECT_EQ(message_of([] {
              edit::normalize(echo({1, 3, 2, 5}), "x", {0}, {1, 2, 3, 4});
            }),
            "'x': no axis has 4 elements, one for each mean and std");
}

}  // namespace
}  // namespace moka::edit_test
