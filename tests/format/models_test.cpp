// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "format/format_util.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

#define MODELS_OR_SKIP()     \
  MOKA_NEEDS_MODELS(folder); \
  const fs::path& models = *folder

Result<ModelFile> open(const fs::path& path) {
  if (path.extension() == ".gz") return open_model_bytes(Bytes::from(test::gunzip(path)), {});
  return open_model(path.string());
}

std::vector<float> floats(const WeightData& data) {
  EXPECT_EQ(data.kind, WeightData::Kind::float32);
  std::vector<float> out(data.bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), data.bytes.data(), data.bytes.size());
  return out;
}

double sum(const std::vector<float>& v) {
  double s = 0;
  for (float x : v) s += x;
  return s;
}

TEST(Models, AllOpen) {
  MODELS_OR_SKIP();
  auto all = test::find_models(models);
  ASSERT_GE(all.size(), 30u);
  for (const auto& path : all) {
    SCOPED_TRACE(path.string());
    auto file = open(path);
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    EXPECT_GE(file->spec().specificationversion(), 1);
    EXPECT_GT(file->spec().description().output_size(), 0);
    EXPECT_EQ(file->mil_text().empty(), !fs::exists(path / "model.mil"));
  }
}

// Values printed by coremltools from the same files.
TEST(Models, WeightsThatStayInTheFile) {
  MODELS_OR_SKIP();
  auto file = open_model(models / "image_nn/MNIST.mlmodel");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  std::map<std::string, const proto::NeuralNetworkLayer*> layers;
  for (const auto& layer : file->spec().neuralnetwork().layers()) layers[layer.name()] = &layer;

  const auto& dense = layers.at("dense_1")->innerproduct().weights();
  EXPECT_TRUE(dense.has_payload_index());
  EXPECT_EQ(dense.floatvalue_size(), 0);
  auto w = floats(*file->weight_data(dense));
  ASSERT_EQ(w.size(), 589824u);
  EXPECT_EQ(w.front(), 0.0072034565f);
  EXPECT_EQ(w.back(), 0.016137088f);
  EXPECT_NEAR(sum(w), 342.9692162926914, 1e-9);

  const auto& small = layers.at("convolution2d_1")->convolution().weights();
  EXPECT_FALSE(small.has_payload_index());
  w = floats(*file->weight_data(small));
  ASSERT_EQ(w.size(), 288u);
  EXPECT_EQ(w.front(), 0.22381072f);
  EXPECT_NEAR(sum(w), 8.73584727360867, 1e-12);
}

TEST(Models, RecurrentWeights) {
  MODELS_OR_SKIP();
  auto file = open_model(models / "seq2seq_lstm/Es2EnCharEncoder.mlmodel");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto& layer = file->spec().neuralnetwork().layers(0);
  auto w = floats(*file->weight_data(layer.unidirectionallstm().weightparams().forgetgaterecursionmatrix()));
  ASSERT_EQ(w.size(), 65536u);
  EXPECT_EQ(w.front(), 0.013586122f);
  EXPECT_EQ(w.back(), 0.30194852f);
  EXPECT_NEAR(sum(w), -859.3695106269151, 1e-9);
}

TEST(Models, Float16Weights) {
  MODELS_OR_SKIP();
  auto file = open_model(models / "card_detector/SSDOcr.mlmodel");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  size_t layers = 0, total = 0;
  uLong crc = crc32(0, nullptr, 0);
  for (const auto& layer : file->spec().neuralnetwork().layers()) {
    if (!layer.has_convolution()) continue;
    auto w = file->weight_data(layer.convolution().weights());
    ASSERT_TRUE(w.ok());
    EXPECT_EQ(w->kind, WeightData::Kind::float16);
    ++layers;
    total += w->bytes.size();
    crc = crc32(crc, reinterpret_cast<const Bytef*>(w->bytes.data()), static_cast<uInt>(w->bytes.size()));
  }
  EXPECT_EQ(layers, 64u);
  EXPECT_EQ(total, 1586240u);
  EXPECT_EQ(crc, 2903886416u);
}

TEST(Models, EveryBlobOfEveryProgramIsThere) {
  MODELS_OR_SKIP();
  size_t references = 0;
  for (const auto& path : test::find_models(models)) {
    if (path.extension() != ".mlpackage") continue;
    SCOPED_TRACE(path.string());
    auto file = open_model(path.string() + "/");
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    EXPECT_EQ(file->container(), Container::mlpackage);
    EXPECT_GE(file->package_items().size(), 2u);
    for (const auto& [name, function] : file->spec().mlprogram().functions())
      for (const auto& [opset, block] : function.block_specializations())
        for (const auto& op : block.operations())
          for (const auto& [key, value] : op.attributes()) {
            if (!value.has_blobfilevalue()) continue;
            auto blob = file->weights().blob(value.blobfilevalue().filename(), value.blobfilevalue().offset());
            ASSERT_TRUE(blob.ok()) << blob.error().to_string();
            uint64_t expected = 1;
            for (const auto& d : value.type().tensortype().dimensions()) expected *= d.constant().size();
            EXPECT_EQ(blob->count, expected);
            ++references;
          }
  }
  EXPECT_GT(references, 100u);
}

TEST(Models, CompiledProgram) {
  MODELS_OR_SKIP();
  fs::path path = models / "silero_vad/unified_palette_4bit.mlmodelc";
  auto file = open_model(path.string() + "/");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->container(), Container::mlmodelc);
  EXPECT_TRUE(file->mil_text().text().starts_with("program(1.0)"));
  EXPECT_FALSE(file->spec().has_mlprogram());
  ASSERT_NE(file->compiled(), nullptr);
  EXPECT_EQ(file->compiled()->type, 502u);
  EXPECT_EQ(file->compiled()->target, "generic");
  auto metadata = nlohmann::json::parse(file->compiled()->metadata_json.text()).at(0);
  EXPECT_EQ(file->spec().specificationversion(), metadata.at("specificationVersion").get<int>());
  ASSERT_EQ(static_cast<size_t>(file->spec().description().input_size()), metadata.at("inputSchema").size());
  for (int i = 0; i < file->spec().description().input_size(); ++i)
    EXPECT_EQ(file->spec().description().input(i).name(), metadata.at("inputSchema").at(i).at("name"));

  auto bytes = file->weights().file("@model_path/weights/weight.bin");
  ASSERT_TRUE(bytes.ok()) << bytes.error().to_string();
  auto blobs = list_blobs(*bytes);
  ASSERT_TRUE(blobs.ok()) << blobs.error().to_string();
  EXPECT_EQ(blobs->size(), 20u);
  EXPECT_EQ(blobs->back().offset, 158592u);
  EXPECT_EQ(blobs->back().count, 128u);
  EXPECT_EQ(blobs->back().type, BlobType::float16);
}

TEST(Models, OverlaysOfAPackage) {
  MODELS_OR_SKIP();
  auto file = open_model(models / "rules_apple_samples/sample.mlpackage");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto& description = file->spec().description();
  EXPECT_EQ(description.metadata().author(), "Bazel Rules Authors");
  EXPECT_EQ(description.input(0).shortdescription(), "Input text");
  EXPECT_EQ(description.output(0).shortdescription(), "Text label");
}

TEST(Models, StagesOfAPipeline) {
  MODELS_OR_SKIP();
  auto file = open_model(models / "glm_sleep/SleepCalculator.mlmodel");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  auto stages = file->stages(file->spec());
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_TRUE(stages[0].model->has_featurevectorizer());
  EXPECT_TRUE(stages[1].model->has_glmregressor());
  EXPECT_TRUE(file->stages(*stages[1].model).empty());
}

}  // namespace
}  // namespace moka::format
