// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "format/espresso/network.h"
#include "format/format_util.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::coremldata_header;
using test::Stream;

/// A compiled neural network with one image or array input "x" and the output "y".
class EspressoFolder {
 public:
  EspressoFolder() {
    proto::ModelDescription d;
    auto& x = *d.add_input();
    x.set_name("x");
    x.mutable_type()->mutable_imagetype()->set_width(4);
    x.mutable_type()->mutable_imagetype()->set_height(4);
    x.mutable_type()->mutable_imagetype()->set_colorspace(proto::ImageFeatureType::RGB);
    d.add_output()->set_name("y");
    describe(d);
    shapes({{"x", {{"k", 3}, {"h", 4}, {"w", 4}, {"n", 1}}}, {"y", {{"k", 2}, {"h", 4}, {"w", 4}, {"n", 1}}}});
    weights({});
  }
  void describe(const proto::ModelDescription& d, uint32_t type = 500) {
    Stream s = coremldata_header(type, "generic", 1);
    s.str(d.SerializeAsString()).u64(type).u64(1).str("y");
    put("coremldata.bin", s.bytes);
  }
  void shapes(const json& sizes) { put("model.espresso.shape", json{{"layer_shapes", sizes}}.dump()); }
  /// Blobs 1, 3, 5, ... with the pad blobs between them.
  void weights(const std::vector<std::string>& blobs, int64_t cut = 0) {
    Stream table;
    std::string payload;
    const size_t head = 8 + 2 * blobs.size() * 16;
    table.u64(2 * blobs.size());
    for (size_t i = 0; i < blobs.size(); ++i) {
      size_t pad = (64 - (head + payload.size()) % 64) % 64;
      table.u64(2 * i).u64(pad).u64(2 * i + 1).u64(blobs[i].size());
      payload += std::string(pad, '\0') + blobs[i];
    }
    std::string all = table.bytes + payload;
    put("model.espresso.weights", all.substr(0, all.size() - static_cast<size_t>(cut)));
  }
  void net(const std::vector<json>& layers, json more = json::object()) {
    more["format_version"] = 200;
    if (!more.contains("storage")) more["storage"] = "model.espresso.weights";
    more["layers"] = layers;
    put("model.espresso.net", more.dump());
  }
  void put(const std::string& name, std::string_view content) { test::write_file(folder_ / name, content); }
  Result<ModelFile> open(const OpenOptions& options = {}) { return open_model((folder_ / "").string(), options); }
  std::string error(ErrorCode code = ErrorCode::malformed) {
    auto file = open();
    if (file.ok()) return "opened";
    EXPECT_EQ(file.error().code(), code) << file.error().to_string();
    return file.error().to_string();
  }

 private:
  test::TemporaryFolder folder_;
};

std::string floats(const std::vector<float>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float)};
}

json convolution() {
  return {{"type", "convolution"},
          {"name", "c"},
          {"bottom", "x"},
          {"top", "y"},
          {"K", 3},
          {"C", 2},
          {"Nx", 1},
          {"Ny", 1},
          {"n_groups", 1},
          {"pad_mode", 0},
          {"pad_t", 1},
          {"pad_b", 2},
          {"pad_l", 3},
          {"pad_r", 4},
          {"stride_x", 2},
          {"has_biases", 1},
          {"blob_biases", 1},
          {"blob_weights", 3},
          {"weights", json::object()}};
}

std::vector<std::string> numbers() { return {floats({0.5f, -0.5f, 0, 0, 0, 0, 0, 0}), floats({1, 2, 3, 4, 5, 6})}; }

const proto::NeuralNetwork& network(const Result<ModelFile>& file) { return file->spec().neuralnetwork(); }

std::vector<float> values(const ModelFile& file, const proto::WeightParams& weight) {
  auto data = file.weight_data(weight);
  if (!data.ok()) return {};
  std::vector<float> out(data->bytes.size() / 4);
  if (!out.empty()) std::memcpy(out.data(), data->bytes.data(), data->bytes.size());
  return out;
}

TEST(Espresso, ConvolutionWithAFusedReluBecomesTwoLayers) {
  EspressoFolder f;
  f.weights(numbers());
  json layer = convolution();
  layer["fused_relu"] = 1;
  f.net({layer},
        {{"transform_params", {{"x", {{"scale", 0.5}, {"bias_r", 1}, {"bias_g", 2}, {"bias_b", 3}, {"bias_a", 0}}}}}});
  auto file = f.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  ASSERT_EQ(network(file).layers_size(), 2);
  const auto& c = network(file).layers(0);
  EXPECT_EQ(c.name(), "c");
  EXPECT_EQ(c.input(0), "x");
  EXPECT_EQ(c.output(0), "c");
  EXPECT_EQ(c.convolution().stride(0), 1u);
  EXPECT_EQ(c.convolution().stride(1), 2u);
  const auto& borders = c.convolution().valid().paddingamounts();
  EXPECT_EQ(borders.borderamounts(0).startedgesize(), 1u);
  EXPECT_EQ(borders.borderamounts(0).endedgesize(), 2u);
  EXPECT_EQ(borders.borderamounts(1).startedgesize(), 3u);
  EXPECT_EQ(borders.borderamounts(1).endedgesize(), 4u);
  EXPECT_EQ(values(*file, c.convolution().weights()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  // The blob of biases is four times as long and padded with zeros, as two of Apple's compilers write it.
  EXPECT_EQ(values(*file, c.convolution().bias()), (std::vector<float>{0.5f, -0.5f}));
  const auto& relu = network(file).layers(1);
  EXPECT_TRUE(relu.activation().has_relu());
  EXPECT_EQ(relu.input(0), "c");
  EXPECT_EQ(relu.output(0), "y");
  const auto& scaler = network(file).preprocessing(0).scaler();
  EXPECT_EQ(network(file).preprocessing(0).featurename(), "x");
  EXPECT_EQ(scaler.channelscale(), 0.5f);
  EXPECT_EQ(scaler.redbias(), 1);
  EXPECT_EQ(scaler.greenbias(), 2);
  EXPECT_EQ(scaler.bluebias(), 3);
}

// The oldest compilers store the scale and bias of images only in model/coremldata.bin, as eight maps.
TEST(Espresso, PreprocessingOfTheFirstCompilers) {
  EspressoFolder f;
  f.net({{{"type", "activation"}, {"mode", 0}, {"name", "a"}, {"bottom", "x"}, {"top", "y"}}});
  Stream s;
  for (float v : {1.0f, 1.0f, 0.0f, -104.0f, -117.0f, -123.0f, 0.0f, 0.25f}) s.u64(1).str("x").raw(&v, 4);
  f.put("model/coremldata.bin", s.bytes);
  auto file = f.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto& scaler = network(file).preprocessing(0).scaler();
  EXPECT_EQ(scaler.bluebias(), -104);
  EXPECT_EQ(scaler.greenbias(), -117);
  EXPECT_EQ(scaler.redbias(), -123);
  EXPECT_EQ(scaler.channelscale(), 0.25f);
}

TEST(Espresso, TransposedConvolutions) {
  EspressoFolder f;
  json layer = convolution();
  layer["type"] = "deconvolution";
  layer["deconv_out_height"] = layer["deconv_out_width"] = 4;
  f.weights({floats({0, 0}), floats({1, 2, 3, 4, 5, 6})});
  layer["blob_biases"] = 1;
  layer["blob_weights"] = 3;
  f.net({layer});
  auto dense = f.open();
  ASSERT_TRUE(dense.ok()) << dense.error().to_string();
  EXPECT_EQ(network(dense).layers(0).convolution().kernelchannels(), 3u);
  EXPECT_EQ(values(*dense, network(dense).layers(0).convolution().weights()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  layer["K"] = layer["C"] = layer["n_groups"] = 2;
  f.weights({floats({1, 2}), floats({0, 0})});
  layer["blob_weights"] = 1;
  layer["blob_biases"] = 3;
  f.net({layer});
  auto file = f.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto& p = network(file).layers(0).convolution();
  EXPECT_TRUE(p.isdeconvolution());
  EXPECT_EQ(p.outputshape(1), 4u);
  EXPECT_EQ(values(*file, p.weights()), (std::vector<float>{1, 2}));
}

TEST(Espresso, EightBitWeights) {
  EspressoFolder f;
  json layer = convolution();
  layer.erase("blob_weights");
  layer["weights"] = {{"W_U8", 3}, {"per_ch_qscale", 5}, {"per_ch_qbias", 7}};
  f.weights({floats({0, 0}), std::string("\1\2\3\4\5\6"), floats({0.5f, 2}), floats({-1, 1})});
  f.net({layer});
  auto file = f.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto& weights = network(file).layers(0).convolution().weights();
  EXPECT_EQ(file->weight_data(weights)->kind, WeightData::Kind::raw);
  EXPECT_EQ(weights.quantization().numberofbits(), 8u);
  EXPECT_EQ(weights.quantization().linearquantization().scale(1), 2);
  EXPECT_EQ(weights.quantization().linearquantization().bias(0), -1);
}

TEST(Espresso, AxesOfTransposes) {
  EspressoFolder f;
  json transpose = {{"type", "transpose"}, {"name", "t"}, {"bottom", "x"}, {"top", "y"},   {"axis_w", 2},
                    {"axis_h", 0},         {"axis_k", 1}, {"axis_n", 3},   {"axis_seq", 4}};
  f.net({transpose});
  auto file = f.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  std::vector<uint64_t> axes(network(file).layers(0).permute().axis().begin(),
                             network(file).layers(0).permute().axis().end());
  EXPECT_EQ(axes, (std::vector<uint64_t>{0, 2, 3, 1}));

  // If a rank is given, the last dimension is w.
  f.shapes({{"x", {{"n", 1}, {"k", 3}, {"h", 4}, {"w", 4}, {"_rank", 4}}}});
  file = f.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto& nd = network(file).layers(0).transpose().axes();
  EXPECT_EQ(std::vector<uint64_t>(nd.begin(), nd.end()), (std::vector<uint64_t>{0, 2, 3, 1}));
}

TEST(Espresso, ReducedAxesMustFitTheSizes) {
  EspressoFolder f;
  json reduce = {{"type", "reduce"}, {"name", "r"}, {"bottom", "x"}, {"top", "y"}, {"mode", 0}, {"axis_mode", 4}};
  f.net({reduce});
  EXPECT_NE(f.error(ErrorCode::unsupported).find("axis_mode 4"), std::string::npos);
  f.shapes({{"x", {{"k", 3}, {"h", 4}, {"w", 4}}}, {"y", {{"k", 1}, {"h", 4}, {"w", 4}}}});
  auto file = f.open();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(network(file).layers(0).reduce().axis(), proto::ReduceLayerParams::C);
}

TEST(Espresso, ErrorsNameTheLayer) {
  EspressoFolder f;
  f.net({{{"type", "teleport"}, {"name", "beam"}, {"bottom", "x"}, {"top", "y"}}});
  std::string error = f.error(ErrorCode::unsupported);
  EXPECT_NE(error.find("beam"), std::string::npos) << error;
  EXPECT_NE(error.find("teleport"), std::string::npos) << error;
  f.net({{{"type", "activation"}, {"mode", 99}, {"name", "a"}, {"bottom", "x"}, {"top", "y"}}});
  EXPECT_NE(f.error(ErrorCode::unsupported).find("mode 99"), std::string::npos);
  f.net({{{"type", "activation"}, {"mode", "relu"}, {"name", "a"}, {"bottom", "x"}, {"top", "y"}}});
  EXPECT_NE(f.error().find("'mode'"), std::string::npos);
  f.net({3});
  f.error();
}

TEST(Espresso, WeightsThatAreNotThere) {
  EspressoFolder f;
  f.net({convolution()});
  EXPECT_NE(f.error().find("blob 3"), std::string::npos);  // no blobs at all
  f.weights(numbers(), 4);
  EXPECT_NE(f.error().find("model.espresso.weights"), std::string::npos);  // truncated
  f.weights({floats({1, 2}), floats({1, 2, 3})});
  std::string error = f.error();
  EXPECT_NE(error.find("expected 24 bytes"), std::string::npos) << error;
  Stream huge;
  huge.u64(1).u64(1).u64(~0ull);
  f.put("model.espresso.weights", huge.bytes);
  f.error();
  Stream many;
  many.u64(~0ull);
  f.put("model.espresso.weights", many.bytes);
  f.error();
  json layer = convolution();
  layer["K"] = layer["C"] = 2147483647;
  layer["Nx"] = layer["Ny"] = 2147483647;
  f.net({layer});
  f.error();
}

TEST(Espresso, StorageStaysInTheFolder) {
  EspressoFolder f;
  for (const char* name : {"../model.espresso.weights", "/etc/hostname", "a/../../w"}) {
    f.net({convolution()}, {{"storage", name}});
    std::string error = f.error();
    EXPECT_NE(error.find(name), std::string::npos) << error;
  }
}

TEST(Espresso, DeepAndLargeJson) {
  EspressoFolder f;
  f.put("model.espresso.net", std::string(1 << 20, '['));
  EXPECT_NE(f.error().find("nests deeper"), std::string::npos);
  f.put("model.espresso.net", "pbze");
  EXPECT_NE(f.error(ErrorCode::unsupported).find("compressed"), std::string::npos);
  f.put("model.espresso.net", "{\"layers\":[");
  f.error();

  // Millions of small objects take time in proportion, not hours.
  std::string objects = "{\"layers\":[";
  for (int i = 0; i < 1000000; ++i) objects += "{},";
  f.put("model.espresso.net", objects + "{}]}");
  EXPECT_NE(f.error().find("no type"), std::string::npos);

  // A megabyte of small layers must fit the budget before it is parsed.
  std::string bomb = "{\"layers\":[";
  for (int i = 0; i < 200000; ++i) bomb += "[],";
  f.put("model.espresso.net", bomb + "[]]}");
  auto budget = std::make_shared<MemoryBudget>(size_t{4} << 20);
  auto file = f.open({budget});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::out_of_budget);
  EXPECT_EQ(budget->used(), 0u);
}

// The specification and what Apple's compiler made of it.
TEST(Espresso, ACompiledModelIsItsSource) {
  MOKA_NEEDS_MODELS(models);
  auto source = open_model(*models / "image_quality/ImageQualityCP20.mlmodel");
  auto compiled = open_model(*models / "image_quality/ImageQualityCP20.mlmodelc");
  ASSERT_TRUE(source.ok()) << source.error().to_string();
  ASSERT_TRUE(compiled.ok()) << compiled.error().to_string();
  EXPECT_EQ(network(source).arrayinputshapemapping(), network(compiled).arrayinputshapemapping());
  ASSERT_EQ(network(source).layers_size(), network(compiled).layers_size());
  for (int i = 0; i < network(source).layers_size(); ++i) {
    const auto& a = network(source).layers(i);
    const auto& b = network(compiled).layers(i);
    SCOPED_TRACE(a.name());
    EXPECT_EQ(a.layer_case(), b.layer_case());
    EXPECT_EQ(values(*source, a.convolution().weights()), values(*compiled, b.convolution().weights()));
    EXPECT_EQ(values(*source, a.innerproduct().weights()), values(*compiled, b.innerproduct().weights()));
    EXPECT_EQ(a.transpose().SerializeAsString(), b.transpose().SerializeAsString());
    EXPECT_EQ(a.softmaxnd().axis(), b.softmaxnd().axis());
  }
}

}  // namespace
}  // namespace moka::format
