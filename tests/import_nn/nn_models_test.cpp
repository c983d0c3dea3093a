// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "import_nn/nn_util.h"

namespace moka::test {

namespace {

std::vector<std::pair<std::string, Json>> models() {
  std::vector<std::pair<std::string, Json>> all;
  for (auto& entry : golden("nn")) all.push_back(entry);
  return all;
}

class NnModels : public testing::TestWithParam<std::pair<std::string, Json>> {};

TEST_P(NnModels, MatchesOnnxRuntime) {
  const Json& c = GetParam().second;
  MOKA_NEEDS_MODELS(models);
  auto file = format::open_model(*models / c.at("model").get<std::string>());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  std::map<std::string, ir::Shape> shapes;
  std::map<std::string, ir::Tensor> inputs;
  for (const auto& v : c.at("inputs")) {
    shapes[v.at("name")] = shape_of(v.at("shape"));
    inputs[v.at("name")] = draw(v.at("seed"), shape_of(v.at("shape")), v.at("low"), v.at("high"));
  }
  auto network = import_network(*file, shapes);
  ASSERT_TRUE(network.ok()) << network.error().to_string();
  auto results = run(*network, inputs);
  ASSERT_TRUE(results.ok()) << results.error().to_string();
  double tolerance = c.at("tolerance"), worst = 0;
  for (const auto& want : c.at("outputs")) {
    const auto& got = results->at(want.at("name")).tensor;
    const std::string name = want.at("name");
    EXPECT_EQ(got.shape().to_vector(), want.at("shape").get<std::vector<int64_t>>()) << name;
    double sum = 0;
    for (int64_t i = 0; i < got.count(); i++) sum += std::abs(ir::load_f64(got.view(), i));
    double mean = want.at("mean_abs"), scale = want.at("scale");
    EXPECT_NEAR(sum / static_cast<double>(got.count()), mean, tolerance * std::max(scale, mean)) << name;
    for (size_t k = 0; k < want.at("index").size(); k++) {
      int64_t i = want.at("index")[k];
      ASSERT_LT(i, got.count());
      double expected = want.at("value")[k], value = ir::load_f64(got.view(), i);
      double unit = std::max({scale, std::abs(expected), 1e-30});
      worst = std::max(worst, std::abs(value - expected) / unit);
      EXPECT_LE(std::abs(value - expected), tolerance * unit)
          << name << "[" << i << "]: " << value << ", expected " << expected;
    }
  }
  RecordProperty("worst_difference", cat(worst));
}

INSTANTIATE_TEST_SUITE_P(Golden, NnModels, testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.first; });

TEST(NnModels, CustomLayerIsNamed) {
  MOKA_NEEDS_MODELS(models);
  auto file = format::open_model(*models / "custom_and_image_io/NeuralMcNeuralNet.mlmodel");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  auto network = import_network(*file, {{"image", ir::Shape{1, 3, 256, 256}}});
  ASSERT_FALSE(network.ok());
  EXPECT_EQ(network.error().code(), ErrorCode::unsupported);
  EXPECT_NE(network.error().to_string().find("custom layer 'Swish'"), std::string::npos) << network.error().to_string();
}

/// The imported shapes are those of the models' descriptions, flexible ones included.
TEST(NnModels, ImportAsDescribed) {
  MOKA_NEEDS_MODELS(models);
  for (const auto& [name, c] : golden("nn")) {
    auto file = format::open_model(*models / c.at("model").get<std::string>());
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    auto model = import::import_model(*file, {});
    ASSERT_TRUE(model.ok()) << name << ": " << model.error().to_string();
    const ir::Function* f = model->program.find(model->description.default_function);
    ASSERT_NE(f, nullptr);
    const auto& described = model->description.functions[0].outputs;
    ASSERT_EQ(f->body().outputs().size(), described.size());
    for (size_t i = 0; i < described.size(); i++) {
      if (described[i].array.shape.empty()) continue;
      EXPECT_EQ(f->body().outputs()[i]->type.shape().to_vector(), described[i].array.shape)
          << name << ", " << described[i].name;
    }
  }
}

/// The model's one layer is an identity of the scaled image; the image comes back as an image.
TEST(NnModels, ImageToImage) {
  MOKA_NEEDS_MODELS(models);
  auto file = format::open_model(*models / "custom_and_image_io/Image2Image.mlmodel");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  auto model = import::import_model(*file, {});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const ir::Function* f = model->program.find(model->description.default_function);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->body().outputs()[0]->type, ir::Type::tensor(ir::DType::fp32, ir::Shape{1, 3, 256, 256}));
}

}  // namespace

}  // namespace moka::test
