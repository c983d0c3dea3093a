// SPDX-License-Identifier: Apache-2.0
#include "lint_util.h"
#include "moka/edit.h"

/// Repairs of neural networks.
namespace moka::lint_test {
namespace {

using Texts = std::vector<std::string>;

/// A network from x [8] to y [8], to which layers are added.
class LayeredNet {
 public:
  LayeredNet() : model(network("x", "y").specification()) { layers().clear("layers"); }
  Message layers() const { return model.at("neuralNetwork", 0); }
  Message layer(const std::string& name, const Texts& inputs, const Texts& outputs) const {
    Message out = layers().add("layers");
    out.set("name", name);
    out.set("input", std::vector<Message::Scalar>(inputs.begin(), inputs.end()));
    out.set("output", std::vector<Message::Scalar>(outputs.begin(), outputs.end()));
    return out;
  }
  /// An activation: "ReLU", "tanh", "sigmoid".
  void activation(const std::string& kind, const std::string& input, const std::string& output) const {
    layer(output, {input}, {output}).add("activation").add(kind);
  }
  void sum(const Texts& inputs, const std::string& output) const { layer(output, inputs, {output}).add("add"); }
  void product(const std::string& input, const std::string& output, unsigned seed) const {
    Message product = layer(output, {input}, {output}).add("innerProduct");
    product.set("inputChannels", 8);
    product.set("outputChannels", 8);
    std::vector<Message::Scalar> numbers;
    const MultiArray weights = noise({8, 8}, 1, seed);
    for (const float x : weights.as<float>()) numbers.emplace_back(x);
    product.add("weights").set("floatValue", numbers);
  }
  ModelSource source() const { return ModelSource(model); }
  Message model;
};

Texts layers_of(const ModelSource& source) {
  Texts out;
  for (const Message& layer : source.specification().at("neuralNetwork", 0).all("layers"))
    out.push_back(std::get<std::string>(layer.values("name").at(0)));
  return out;
}

Texts repaired(const ModelSource& source, ModelSource& out) {
  const Saved saved(source);
  lint::Repair repair = lint::fix(saved.path);
  out = repair.model;
  Texts done;
  for (const auto& [rule, what] : repair.done) done.push_back(rule + ": " + what);
  return done;
}

void expect_same_answer(const ModelSource& a, const ModelSource& b) {
  Features inputs;
  inputs["x"] = noise({8}, 1, 9);
  const Features first = a.load().predict(inputs), second = b.load().predict(inputs);
  const auto &p = std::get<MultiArray>(first.at("y")), &q = std::get<MultiArray>(second.at("y"));
  ASSERT_EQ(p.shape(), q.shape());
  for (int64_t i = 0; i < p.count(); ++i) EXPECT_EQ(p.at(i), q.at(i));
}

TEST(RepairNetwork, UnusedAndEqualLayers) {
  const LayeredNet net;
  net.product("x", "a", 1);
  net.product("x", "again", 1);
  net.product("x", "other", 2);
  net.activation("ReLU", "a", "a_relu");
  net.activation("ReLU", "again", "again_relu");
  net.activation("tanh", "x", "dead");
  net.activation("sigmoid", "dead", "deader");
  net.sum({"a_relu", "again_relu", "other"}, "y");
  const lint::Report before = report(net.source());
  EXPECT_TRUE(finds(before, "unused-operation", "'deader'", lint::Level::warning));
  EXPECT_TRUE(finds(before, "duplicate-operation", "'again'", lint::Level::note));
  ModelSource after = net.source();
  EXPECT_EQ(repaired(net.source(), after),
            (Texts{"duplicate-operation: merged 2 layers", "unused-operation: dropped 2 layers"}));
  EXPECT_EQ(layers_of(after), (Texts{"a", "other", "a_relu", "y"}));
  EXPECT_EQ(found(after), Texts{});
  expect_same_answer(net.source(), after);
}

TEST(RepairNetwork, AnEqualLayerThatIsTheOutputStays) {
  const LayeredNet net;
  net.activation("ReLU", "x", "t");
  net.activation("ReLU", "x", "y");
  ModelSource after = net.source();
  EXPECT_EQ(repaired(net.source(), after), (Texts{"unused-operation: dropped 1 layer"}));
  EXPECT_EQ(layers_of(after), (Texts{"y"}));
}

TEST(RepairNetwork, ValuesThatAreWrittenTwiceStay) {
  const LayeredNet net;
  net.activation("ReLU", "x", "t");
  net.activation("sigmoid", "t", "p");
  net.activation("tanh", "x", "t");
  net.activation("sigmoid", "t", "q");
  net.sum({"p", "q"}, "y");
  ModelSource after = net.source();
  EXPECT_EQ(repaired(net.source(), after), Texts{});
  expect_same_answer(net.source(), after);
}

TEST(RepairNetwork, RandomLayersStay) {
  const LayeredNet net;
  for (const char* name : {"r", "s", "unread"}) {
    Message random = net.layer(name, {"x"}, {name}).add("randomUniformLike");
    random.set("seed", 3);
    random.set("minVal", 0.0);
    random.set("maxVal", 1.0);
  }
  net.sum({"r", "s"}, "y");
  ModelSource after = net.source();
  EXPECT_EQ(repaired(net.source(), after), Texts{});
  EXPECT_EQ(layers_of(after), (Texts{"r", "s", "unread", "y"}));
}

TEST(RepairNetwork, BranchesKeepWhatTheyRead) {
  const LayeredNet net;
  net.activation("tanh", "x", "inner");
  net.activation("tanh", "x", "same");
  Message constant = net.layer("condition", {}, {"condition"}).add("loadConstantND");
  constant.set("shape", std::vector<Message::Scalar>{1});
  constant.add("data").set("floatValue", std::vector<Message::Scalar>{1.0});
  Message branch = net.layer("branch", {"condition"}, {}).add("branch");
  for (const char* field : {"ifBranch", "elseBranch"}) {
    Message copy = branch.add(field).add("layers");
    copy.set("name", std::string("copy_") + field);
    copy.set("input", std::vector<Message::Scalar>{"inner"});
    copy.set("output", std::vector<Message::Scalar>{"chosen"});
    copy.add("copy");
  }
  net.sum({"chosen", "same"}, "y");
  ModelSource after = net.source();
  EXPECT_EQ(repaired(net.source(), after), Texts{});
  expect_same_answer(net.source(), after);
}

TEST(RepairNetwork, UpdatableNetworksStay) {
  LayeredNet net;
  net.activation("tanh", "x", "dead");
  net.activation("ReLU", "x", "y");
  net.model.set("isUpdatable", Message::Scalar(true));
  ModelSource after = net.source();
  EXPECT_EQ(repaired(net.source(), after), Texts{});
  EXPECT_EQ(layers_of(after), (Texts{"dead", "y"}));
}

TEST(RepairNetwork, OperationsThatTheImporterAddsAreNotRepaired) {
  const LayeredNet net;
  net.layer("scaled", {"x"}, {"scaled"}).add("multiply").set("alpha", 1.0);
  net.activation("ReLU", "scaled", "y");
  ModelSource after = net.source();
  EXPECT_EQ(repaired(net.source(), after), Texts{});
}

TEST(RepairNetwork, TheVersionIsRaised) {
  const LayeredNet net;
  net.activation("ReLU", "x", "y");
  net.model.at("description", 0).at("input", 0).at("type", 0).at("multiArrayType", 0).set("dataType", "FLOAT16");
  ModelSource after = net.source();
  EXPECT_EQ(repaired(net.source(), after), (Texts{"system-version: raised the specification version to 7"}));
}

TEST(RepairNetwork, AClassifierKeepsItsProbabilities) {
  const LayeredNet net;
  net.activation("tanh", "x", "dead");
  net.activation("sigmoid", "x", "hidden");
  net.activation("ReLU", "hidden", "y");
  std::vector<std::string> labels;
  for (int i = 0; i < 8; ++i) labels.push_back(std::to_string(i));
  const ModelSource classifier = edit::set_labels(net.source(), labels, {"", "label", "probabilities"});
  ModelSource after = classifier;
  EXPECT_EQ(repaired(classifier, after), (Texts{"unused-operation: dropped 1 layer"}));
  Features inputs;
  inputs["x"] = noise({8}, 1, 9);
  const Features p = classifier.load().predict(inputs), q = after.load().predict(inputs);
  EXPECT_EQ(std::get<Dictionary>(p.at("probabilities")).strings, std::get<Dictionary>(q.at("probabilities")).strings);
  EXPECT_EQ(std::get<std::string>(p.at("label")), std::get<std::string>(q.at("label")));
}

TEST(RepairNetwork, TheModelsOfAPipelineAreRepaired) {
  LayeredNet net;
  net.activation("tanh", "x", "dead");
  net.activation("ReLU", "x", "y");
  Message pipeline = net.model.copy();
  pipeline.clear("neuralNetwork");
  pipeline.add("pipeline").add("models");
  pipeline.at("pipeline", 0).clear("models");
  pipeline.at("pipeline", 0).set("models", net.model);
  EXPECT_TRUE(finds(report(ModelSource(pipeline)), "unused-operation", "'dead'", kWarning));
  ModelSource after = net.source();
  EXPECT_EQ(repaired(ModelSource(pipeline), after), (Texts{"unused-operation: dropped 1 layer"}));
  EXPECT_EQ(after.specification().at("pipeline", 0).at("models", 0).at("neuralNetwork", 0).size("layers"), 1u);
  expect_same_answer(ModelSource(pipeline), after);
}

}  // namespace
}  // namespace moka::lint_test
