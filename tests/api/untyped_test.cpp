// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "api/api_util.h"
#include "moka/build.h"
#include "moka/compiler.h"
#include "temporary_folder.h"

/// Pipelines of 2017 leave out the data type of arrays between their models. The files are otherwise complete.
namespace moka::test {
namespace {

Message add_array(Message description, const char* list, const char* name, int64_t size, const char* type = "") {
  Message f = description.add(list).set("name", name);
  Message array = f.add("type").add("multiArrayType").set("shape", std::vector<Message::Scalar>{size});
  if (*type != '\0') array.set("dataType", type);
  return f;
}

void add_number(Message description, const char* list, const char* name) {
  description.add(list).set("name", name).add("type").add("doubleType");
}

/// price = 10 a + 0.1 b + 7, by way of a vector without a data type.
Message price_model() {
  Message model("Model");
  model.set("specificationVersion", 1);
  Message outer = model.add("description");
  for (const char* name : {"a", "b"}) add_number(outer, "input", name);
  add_number(outer, "output", "price");
  outer.set("predictedFeatureName", "price");
  Message pipeline = model.add("pipelineRegressor").add("pipeline");
  Message vectorizer = pipeline.add("models").set("specificationVersion", 1);
  Message first = vectorizer.add("description");
  for (const char* name : {"a", "b"}) add_number(first, "input", name);
  add_array(first, "output", "vector", 2);
  Message columns = vectorizer.add("featureVectorizer");
  for (const char* name : {"a", "b"}) columns.add("inputList").set("inputColumn", name).set("inputDimensions", 1);
  Message regressor = pipeline.add("models").set("specificationVersion", 1);
  Message second = regressor.add("description").set("predictedFeatureName", "price");
  add_array(second, "input", "vector", 2);
  add_number(second, "output", "price");
  Message glm = regressor.add("glmRegressor");
  glm.add("weights").set("value", std::vector<Message::Scalar>{10.0, 0.1});
  glm.set("offset", std::vector<Message::Scalar>{7.0});
  return model;
}

double price(const Model& model, double a, double b) {
  return std::get<double>(model.predict({{"a", a}, {"b", b}}).at("price"));
}

}  // namespace

// float32 has no 16777217.
TEST(UntypedArrays, BetweenModelsHoldDoubles) {
  const TemporaryFolder folder;
  const std::string source = (folder / "m.mlmodel").string(), compiled = (folder / "m.mlmodelc").string();
  ModelSource(price_model()).save(source);
  compile_model(source, compiled);
  for (const std::string& path : {source, compiled}) {
    const Model model = Model::load(path);
    EXPECT_DOUBLE_EQ(price(model, 2, 30), 30) << path;
    EXPECT_DOUBLE_EQ(price(model, 16777217, 10), 167772178) << path;
  }
}

TEST(UntypedArrays, OfTheModelItselfAreRefused) {
  Message model = price_model();
  Message stage = model.at("pipelineRegressor").at("pipeline").at("models", 0);
  expect_error(ErrorKind::malformed, {"output 'vector'", "its data type is not specified"},
               [&] { ModelSource(stage.copy()).load(); });
}

// A network takes the vector as float32, as it takes every array.
TEST(UntypedArrays, AreInputsOfNetworks) {
  Message model = price_model();
  Message models = model.at("pipelineRegressor").at("pipeline");
  models.remove("models", 1);
  Message network = models.add("models").set("specificationVersion", 1);
  Message description = network.add("description");
  add_array(description, "input", "vector", 2);
  add_array(description, "output", "untyped", 2);
  Message layer = network.add("neuralNetwork").add("layers").set("name", "twice");
  layer.set("input", std::vector<Message::Scalar>{std::string("vector")});
  layer.set("output", std::vector<Message::Scalar>{std::string("untyped")});
  layer.add("activation").add("linear").set("alpha", 2.0);
  Message extractor = models.add("models").set("specificationVersion", 1);
  Message last = extractor.add("description");
  add_array(last, "input", "untyped", 2);
  add_array(last, "output", "second", 1, "DOUBLE");
  extractor.add("arrayFeatureExtractor").set("extractIndex", std::vector<Message::Scalar>{int64_t{1}});
  Message outer = model.at("description");
  outer.clear("output");
  outer.clear("predictedFeatureName");
  add_array(outer, "output", "second", 1, "DOUBLE");
  const Model loaded = ModelSource(model).load();
  EXPECT_EQ(values(loaded.predict({{"a", 5.0}, {"b", 1.5}}).array("second")), (std::vector<double>{3}));
}

}  // namespace moka::test
