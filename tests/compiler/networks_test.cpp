#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "compiler/compiler.h"
#include "format/espresso/network.h"
#include "format/mlmodelc/coremldata.h"
#include "format/proto/model.pb.h"
#include "models_folder.h"

/// Compares compiled neural networks with the output of Apple's compiler.
namespace moka::compiler {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Bytes read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes::from(std::string(std::istreambuf_iterator<char>(in), {}));
}

json parse(const Bytes& bytes) { return json::parse(bytes.text()); }

std::vector<float> floats(const Bytes& bytes, bool half) {
  std::vector<float> out(bytes.size() / (half ? 2 : 4));
  if (!half) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  std::vector<uint16_t> bits(out.size());
  std::memcpy(bits.data(), bytes.data(), bytes.size());
  half_to_float(bits.data(), out.data(), out.size());
  return out;
}

class Networks : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    MOKA_NEEDS_MODELS(models);
    apple_ = *models / (std::string(GetParam()) + ".mlmodelc");
    auto file = format::open_model((*models / (std::string(GetParam()) + ".mlmodel")).string());
    ASSERT_TRUE(file.ok());
    auto files = compile(*file, apple_.stem().string());
    ASSERT_TRUE(files.ok()) << files.error().to_string();
    ours_ = *files;
  }
  fs::path apple_;
  Files ours_;
};

TEST_P(Networks, LayersAreEqual) {
  json apple = parse(read(apple_ / "model.espresso.net")), ours = parse(ours_.at("model.espresso.net"));
  // A hint that some compilers write for layers with a sequence. The rule is unknown.
  for (json& layer : apple["layers"]) layer.erase("hint_fallback_from_metal");
  // Newer compilers write it.
  apple["metadata_in_weights"] = json::array();
  ASSERT_EQ(apple["layers"].size(), ours["layers"].size());
  for (size_t i = 0; i < apple["layers"].size(); ++i) EXPECT_EQ(apple["layers"][i], ours["layers"][i]);
  EXPECT_EQ(apple, ours);
  EXPECT_EQ(parse(read(apple_ / "model.espresso.shape")), parse(ours_.at("model.espresso.shape")));
}

TEST_P(Networks, WeightsAreEqual) {
  const Bytes file = read(apple_ / "model.espresso.weights");
  auto apple = format::espresso::parse_weights(file);
  auto ours = format::espresso::parse_weights(ours_.at("model.espresso.weights"));
  ASSERT_TRUE(apple.ok() && ours.ok());
  ASSERT_EQ(apple->size(), ours->size());
  for (const auto& [id, bytes] : *apple) EXPECT_EQ(bytes.size(), ours->at(id).size()) << id;
  for (const json& layer : parse(ours_.at("model.espresso.net"))["layers"]) {
    for (const char* key : {"blob_weights", "blob_weights_f16"})
      if (layer.contains(key)) {
        EXPECT_TRUE(apple->at(layer[key]).text() == ours->at(layer[key]).text()) << layer["name"];
      }
    if (!layer.contains("blob_biases")) continue;
    const auto a = floats(apple->at(layer["blob_biases"]), false), b = floats(ours->at(layer["blob_biases"]), false);
    float largest = 0;
    for (float v : a) largest = std::max(largest, std::fabs(v));
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 4e-7f * largest) << layer["name"] << i;
  }
}

TEST_P(Networks, TheOtherFilesAreEqual) {
  for (const char* name : {"model/coremldata.bin", "neural_network_optionals/coremldata.bin"})
    EXPECT_EQ(read(apple_ / name).text(), ours_.at(name).text()) << name;
  auto apple = format::parse_coremldata(read(apple_ / "coremldata.bin"));
  auto ours = format::parse_coremldata(ours_.at("coremldata.bin"));
  ASSERT_TRUE(apple.ok() && ours.ok());
  EXPECT_EQ(apple->type, ours->type);
  EXPECT_EQ(std::vector(apple->version, apple->version + 3), std::vector(ours->version, ours->version + 3));
  EXPECT_EQ(apple->target, ours->target);
  EXPECT_EQ(apple->description.text(), ours->description.text());
  const std::set<std::string> a(apple->outputs.begin(), apple->outputs.end()),
      b(ours->outputs.begin(), ours->outputs.end());
  EXPECT_EQ(a, b);
}

TEST(UpdatableNetworks, KeepTheirSpecification) {
  MOKA_NEEDS_MODELS(models);
  const Bytes source = read(*models / "image_quality/ImageQualityCP20.mlmodel");
  // isUpdatable, field 10 of Model, is true.
  auto file = format::open_model_bytes(Bytes::from(std::string(source.text()) + "\x50\x01"), {});
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  auto files = compile(*file, "m");
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  EXPECT_FALSE(files->contains("model.espresso.net"));
  auto data = format::parse_coremldata(files->at("coremldata.bin"));
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->target, "spec");
}

/// A compiled network holds no array without a size or with more than five dimensions.
TEST(NetworksOfUnknownForm, KeepTheirSpecification) {
  for (int rank : {0, 6}) {
    proto::Model model;
    model.set_specificationversion(6);
    auto& input = *model.mutable_description()->add_input();
    input.set_name("x");
    input.mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::DOUBLE);
    for (int i = 0; i < rank; ++i) input.mutable_type()->mutable_multiarraytype()->add_shape(2);
    auto& output = *model.mutable_description()->add_output();
    output.set_name("y");
    *output.mutable_type() = input.type();
    auto& layer = *model.mutable_neuralnetwork()->add_layers();
    layer.set_name("layer");
    layer.add_input("x");
    layer.add_output("y");
    layer.mutable_softmaxnd()->set_axis(-1);
    model.mutable_neuralnetwork()->set_arrayinputshapemapping(proto::EXACT_ARRAY_MAPPING);
    auto file = format::open_model_bytes(Bytes::from(model.SerializeAsString()), {});
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    auto files = compile(*file, "m");
    ASSERT_TRUE(files.ok()) << files.error().to_string();
    auto data = format::parse_coremldata(files->at("coremldata.bin"));
    ASSERT_TRUE(data.ok());
    EXPECT_EQ(data->target, "spec") << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, Networks, testing::Values("card_detector/SSDOcr", "image_quality/ImageQualityCP20"));

}  // namespace
}  // namespace moka::compiler
