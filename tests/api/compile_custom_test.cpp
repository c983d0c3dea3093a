// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <fstream>

#include "api/api_util.h"
#include "moka/build.h"
#include "moka/compiler.h"
#include "moka/custom.h"
#include "temporary_folder.h"

/// Compiled models of which the application has a part: it is needed when they are loaded, as for the source.
namespace moka::test {
namespace {

namespace fs = std::filesystem;

FeatureDescription plain_feature(const char* name, FeatureType type) {
  FeatureDescription f;
  f.name = name;
  f.type = type;
  if (type == FeatureType::multi_array) f.array.shape = {3, 2, 2};
  return f;
}

ModelSource text_classifier() {
  ModelDescription d;
  d.specification_version = 3;
  d.functions = {{"", {plain_feature("text", FeatureType::string)}, {plain_feature("label", FeatureType::string)}}};
  Message model = describe_model(d);
  Message classifier = model.add("textClassifier").set("revision", 1);
  classifier.add("stringClassLabels")
      .set("vector", std::vector<Message::Scalar>{std::string("long"), std::string("short")});
  return ModelSource(model);
}

/// relu, a custom layer, relu.
ModelSource custom_network() {
  ModelDescription d;
  d.specification_version = 4;
  d.functions = {{"", {plain_feature("x", FeatureType::multi_array)}, {plain_feature("y", FeatureType::multi_array)}}};
  Message model = describe_model(d);
  Message network = model.add("neuralNetwork");
  const auto layer = [&](const char* name, const char* in, const char* out) {
    return network.add("layers")
        .set("name", name)
        .set("input", std::vector<Message::Scalar>{std::string(in)})
        .set("output", std::vector<Message::Scalar>{std::string(out)});
  };
  layer("first", "x", "a").add("activation").add("ReLU");
  layer("mine", "a", "b").add("custom").set("className", "CompiledHalf");
  layer("last", "b", "y").add("activation").add("ReLU");
  return ModelSource(model);
}

class Half : public CustomLayer {
 public:
  void evaluate(const LayerCall& call) const override {
    const auto x = call.inputs[0].as<const float>();
    const auto y = call.outputs[0].as<float>();
    for (size_t i = 0; i < x.size(); i++) y[i] = x[i] / 2;
  }
};

class ByLength : public CustomModel {
 public:
  Features predict(const Features& inputs) const override {
    const auto& text = std::get<std::string>(inputs.at("text"));
    return {{"label", std::string(text.size() > 4 ? "long" : "short")}};
  }
};

struct Compiled {
  TemporaryFolder folder;
  std::string source, path;
  explicit Compiled(const ModelSource& model) {
    source = (folder / "m.mlmodel").string();
    path = (folder / "m.mlmodelc").string();
    model.save(source);
    compile_model(source, path);
  }
};

std::string refusal(const std::string& path) {
  try {
    Model::load(path);
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    return e.what();
  }
  return "";
}

std::string file_content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST(CompileCustom, ATextClassifierRunsWithARegisteredModel) {
  const Compiled model(text_classifier());
  EXPECT_NE(refusal(model.path).find("register_model(\"textClassifier.1\""), std::string::npos);
  EXPECT_EQ(refusal(model.path), refusal(model.source));
  register_model("textClassifier.1", [](const CustomModelInfo&) { return std::make_unique<ByLength>(); });
  const Model loaded = Model::load(model.path);
  EXPECT_EQ(std::get<std::string>(loaded.predict({{"text", std::string("moka")}}).at("label")), "short");
  EXPECT_EQ(std::get<std::string>(loaded.predict({{"text", std::string("coffee")}}).at("label")), "long");
  unregister_model("textClassifier.1");
}

TEST(CompileCustom, ANetworkRunsWithARegisteredLayer) {
  const Compiled model(custom_network());
  EXPECT_NE(refusal(model.path).find("'CompiledHalf'"), std::string::npos);
  EXPECT_EQ(refusal(model.path), refusal(model.source));
  register_layer("CompiledHalf", [](const LayerInfo&) { return std::make_unique<Half>(); });
  const MultiArray x = counted({3, 2, 2});
  const auto y = values(Model::load(model.path).predict({{"x", x}}).array("y"));
  ASSERT_EQ(y.size(), 12u);
  for (size_t i = 0; i < y.size(); i++)
    EXPECT_FLOAT_EQ(static_cast<float>(y[i]), static_cast<float>(std::max(x.at(static_cast<int64_t>(i)), 0.0) / 2));
  unregister_layer("CompiledHalf");
}

TEST(CompileCustom, DecompilingGivesTheSpecificationBack) {
  for (const ModelSource& source : {text_classifier(), custom_network()}) {
    const Compiled model(source);
    decompile_model(model.path, (model.folder / "again.mlmodel").string());
    EXPECT_EQ(file_content(model.folder / "again.mlmodel"), file_content(model.source));
  }
}

}  // namespace moka::test
