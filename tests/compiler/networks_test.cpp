// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
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
  const json net = parse(ours_.at("model.espresso.net"));
  for (const json& layer : net.at("layers")) {
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
  auto file = format::open_model_bytes(read(MOKA_GOLDEN "/update/plain.mlmodel"), {});
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  auto files = compile(*file, "m");
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  EXPECT_FALSE(files->contains("model.espresso.net"));
  auto data = format::parse_coremldata(files->at("coremldata.bin"));
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->target, "spec");
}

TEST(UpdatableNetworks, ThatBreakARuleAreRefused) {
  MOKA_NEEDS_MODELS(models);
  const Bytes source = read(*models / "image_quality/ImageQualityCP20.mlmodel");
  // isUpdatable, field 10 of Model, is true.
  auto file = format::open_model_bytes(Bytes::from(std::string(source.text()) + "\x50\x01"), {});
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  auto files = compile(*file, "m");
  ASSERT_FALSE(files.ok());
  EXPECT_EQ(files.error().to_string(), "update: the network is updatable, but none of its layers is");
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

/// A network of one layer on an input [channels, 4, 4].
proto::Model network(int channels, const std::function<void(proto::NeuralNetworkLayer&)>& fill) {
  proto::Model model;
  model.set_specificationversion(3);
  auto& input = *model.mutable_description()->add_input();
  input.set_name("x");
  auto& image = *input.mutable_type()->mutable_imagetype();
  image.set_width(4);
  image.set_height(4);
  image.set_colorspace(channels == 1 ? proto::ImageFeatureType::GRAYSCALE : proto::ImageFeatureType::RGB);
  auto& output = *model.mutable_description()->add_output();
  output.set_name("y");
  output.mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::FLOAT32);
  auto& layer = *model.mutable_neuralnetwork()->add_layers();
  layer.set_name("layer");
  layer.add_input("x");
  layer.add_output("y");
  fill(layer);
  return model;
}

Files compiled(const proto::Model& model) {
  auto file = format::open_model_bytes(Bytes::from(model.SerializeAsString()), {});
  EXPECT_TRUE(file.ok()) << file.error().to_string();
  auto files = compile(*file, "m");
  EXPECT_TRUE(files.ok()) << files.error().to_string();
  return files.ok() ? *files : Files{};
}

/// A kernel of 2 by 1 with weights 1, 2, 3, ...
void set_kernel(proto::ConvolutionLayerParams& p, uint64_t inputs, uint64_t outputs, uint64_t groups, int weights) {
  p.set_kernelchannels(inputs);
  p.set_outputchannels(outputs);
  p.set_ngroups(groups);
  p.add_kernelsize(2);
  p.add_kernelsize(1);
  p.mutable_valid();
  for (int i = 1; i <= weights; ++i) p.mutable_weights()->add_floatvalue(static_cast<float>(i));
}

// A published pair keeps the order of the specification's 12,288 weights.
TEST(TransposedConvolutions, KeepTheOrderOfTheirWeights) {
  const Files depthwise = compiled(network(3, [](auto& layer) {
    auto& p = *layer.mutable_convolution();
    set_kernel(p, 3, 3, 3, 6);
    p.set_isdeconvolution(true);
    p.add_stride(2);
    p.add_stride(2);
    p.add_outputshape(8);
    p.add_outputshape(7);
  }));
  const json layer = parse(depthwise.at("model.espresso.net"))["layers"][0];
  EXPECT_EQ(layer["type"], "deconvolution");
  for (const auto& [key, value] : {std::pair{"K", 3},
                                   {"C", 3},
                                   {"n_groups", 3},
                                   {"Ny", 2},
                                   {"Nx", 1},
                                   {"stride_y", 2},
                                   {"deconv_out_height", 8},
                                   {"deconv_out_width", 7},
                                   {"fused_relu", 0}})
    EXPECT_EQ(layer[key], value) << key;
  auto weights = format::espresso::parse_weights(depthwise.at("model.espresso.weights"));
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(floats(weights->at(layer["blob_weights"]), false), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const Files dense = compiled(network(3, [](auto& layer) {
    set_kernel(*layer.mutable_convolution(), 3, 2, 1, 12);
    layer.mutable_convolution()->set_isdeconvolution(true);
  }));
  const json full = parse(dense.at("model.espresso.net"))["layers"][0];
  for (const auto& [key, value] : {std::pair{"K", 3}, {"C", 2}, {"n_groups", 1}}) EXPECT_EQ(full[key], value) << key;
  weights = format::espresso::parse_weights(dense.at("model.espresso.weights"));
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(floats(weights->at(full["blob_weights"]), false),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

// The keys and the order of the blobs are those of published compiled models with weights of 8 bits.
TEST(QuantizedConvolutions, HaveBytesScalesAndBiases) {
  const Files files = compiled(network(3, [](auto& layer) {
    auto& p = *layer.mutable_convolution();
    set_kernel(p, 3, 2, 1, 0);
    p.mutable_weights()->set_rawvalue(std::string("\0\1\2\3\4\5\6\7\x7f\x80\xfe\xff", 12));
    auto& q = *p.mutable_weights()->mutable_quantization();
    q.set_numberofbits(8);
    q.mutable_linearquantization()->add_scale(0.5f);
    for (float bias : {-1.0f, 2.0f}) q.mutable_linearquantization()->add_bias(bias);
  }));
  const json layer = parse(files.at("model.espresso.net"))["layers"][0];
  EXPECT_EQ(layer["weights"], (json{{"W_U8", 1}, {"per_ch_qbias", 3}, {"per_ch_qscale", 5}}));
  EXPECT_FALSE(layer.contains("blob_weights"));
  auto blobs = format::espresso::parse_weights(files.at("model.espresso.weights"));
  ASSERT_TRUE(blobs.ok());
  EXPECT_EQ(blobs->at(1).text(), std::string_view("\0\1\2\3\4\5\6\7\x7f\x80\xfe\xff", 12));
  EXPECT_EQ(floats(blobs->at(3), false), (std::vector<float>{-1, 2}));
  EXPECT_EQ(floats(blobs->at(5), false), (std::vector<float>{0.5f, 0.5f}));
}

INSTANTIATE_TEST_SUITE_P(Pairs, Networks, testing::Values("card_detector/SSDOcr", "image_quality/ImageQualityCP20"));

}  // namespace
}  // namespace moka::compiler
