// SPDX-License-Identifier: Apache-2.0
#include "import/update/update.h"

#include <gtest/gtest.h>

#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/classic_util.h"

/// Models and truth are from tests/golden/update_models.py: coremltools' builders wrote them.
namespace moka::test {
namespace {

using import::UpdateDescription;

const std::string& folder() {
  static const std::string path = golden_folder() + "/../update/";
  return path;
}

std::optional<UpdateDescription> described(const std::string& bytes) {
  auto file = format::open_model_bytes(Bytes::from(bytes), {});
  EXPECT_TRUE(file.ok());
  return import::describe_update(file->spec(), *file);
}

Json value_of(const import::UpdateParameter& p) {
  Json json;
  std::visit([&](auto value) { json["default"] = value; }, p.value);
  if (p.range) json["range"] = {p.range->first, p.range->second};
  if (p.bounds) json["range"] = {p.bounds->first, p.bounds->second};
  if (!p.allowed.empty()) json["allowed"] = p.allowed;
  return json;
}

Json to_json(const UpdateDescription& update) {
  Json json{{"layers", Json::object()}, {"losses", Json::array()}, {"parameters", Json::object()}};
  json["trainingInputs"] = Json::array();
  for (const auto& f : update.training_inputs) json["trainingInputs"].push_back(f.name);
  for (const auto& layer : update.layers) json["layers"][layer.name] = layer.type;
  for (const auto& loss : update.losses) {
    const bool mse = loss.kind == import::LossLayer::Kind::mean_squared_error;
    json["losses"].push_back(
        {loss.name, mse ? "meanSquaredError" : "categoricalCrossEntropy", loss.input, loss.target});
  }
  if (!update.optimizer.empty()) json["optimizer"] = update.optimizer;
  for (const auto& p : update.parameters) json["parameters"][p.name] = value_of(p);
  if (const auto& n = update.neighbors) {
    json["nearestNeighbors"] = {{"dimensions", n->dimensions},
                                {"samples", n->samples},
                                {"index", n->index},
                                {"weighting", n->weighting},
                                {"labels", n->string_labels ? "String" : "Int64"}};
    if (n->default_label) json["nearestNeighbors"]["defaultLabel"] = *n->default_label;
    if (n->leaf_size > 0) json["nearestNeighbors"]["leafSize"] = n->leaf_size;
  }
  return json;
}

TEST(Update, ReadsWhatCoremltoolsWrites) {
  const Json truth = Json::parse(*read_file(folder() + "truth.json"));
  for (const auto& [name, expected] : truth.items()) {
    SCOPED_TRACE(name);
    const auto update = described(*read_file(folder() + name + ".mlmodel"));
    ASSERT_TRUE(update.has_value());
    EXPECT_EQ(update->fault, "");
    EXPECT_EQ(update->remarks, std::vector<std::string>());
    EXPECT_EQ(to_json(*update), expected);
  }
}

TEST(Update, NamesTheInputThatGivesTheTarget) {
  EXPECT_EQ(described(*read_file(folder() + "plain.mlmodel"))->losses.at(0).training_input, "y_true");
  EXPECT_EQ(described(*read_file(folder() + "images.mlmodel"))->losses.at(0).training_input, "digit");
}

TEST(Update, OtherModelsHaveNone) {
  proto::Model model;
  ASSERT_TRUE(model.ParseFromString(*read_file(folder() + "plain.mlmodel")));
  model.set_isupdatable(false);
  EXPECT_FALSE(described(model.SerializeAsString()).has_value());
}

/// One change of a valid model, and what the fault says; empty: the model stays valid.
struct Change {
  const char* name;
  void (*change)(proto::Model& model);
  const char* fault;
  const char* remark = "";
};

proto::NeuralNetwork& net(proto::Model& m) { return *m.mutable_neuralnetwork(); }
proto::NeuralNetworkLayer& layer(proto::Model& m, int i) { return *net(m).mutable_layers(i); }
proto::NetworkUpdateParameters& params(proto::Model& m) { return *net(m).mutable_updateparams(); }
proto::SGDOptimizer& sgd(proto::Model& m) { return *params(m).mutable_optimizer()->mutable_sgdoptimizer(); }
proto::AdamOptimizer& adam(proto::Model& m) {
  proto::AdamOptimizer& a = *params(m).mutable_optimizer()->mutable_adamoptimizer();
  a.mutable_learningrate()->set_defaultvalue(0.1);
  a.mutable_minibatchsize()->set_defaultvalue(4);
  a.mutable_beta1()->set_defaultvalue(0.9);
  a.mutable_beta2()->set_defaultvalue(0.999);
  a.mutable_eps()->set_defaultvalue(1e-8);
  return a;
}
/// Inserts a layer between the first inner product and the second one, which is updated.
proto::NeuralNetworkLayer& between(proto::Model& m) {
  layer(m, 0).set_isupdatable(true);
  layer(m, 0).mutable_innerproduct()->mutable_weights()->set_isupdatable(true);
  layer(m, 0).mutable_innerproduct()->mutable_bias()->set_isupdatable(true);
  return layer(m, 1);
}
void add_softmax(proto::Model& m, bool nd = false) {
  auto* soft = net(m).add_layers();
  soft->set_name("soft");
  soft->add_input("y");
  soft->add_output("p");
  if (nd) soft->mutable_softmaxnd();
  if (!nd) soft->mutable_softmax();
  auto* loss = params(m).mutable_losslayers(0)->mutable_categoricalcrossentropylosslayer();
  loss->set_input("p");
  loss->set_target("y_true");
}

constexpr Change kNetworks[] = {
    {"valid", [](proto::Model&) {}, ""},
    {"version", [](proto::Model& m) { m.set_specificationversion(3); },
     "needs specification version 4 or later, got 3"},
    {"kind", [](proto::Model& m) { m.mutable_glmregressor(); }, "a model of type glmRegressor cannot be updatable"},
    {"wrong layer", [](proto::Model& m) { layer(m, 1).set_isupdatable(true); },
     "layer 'relu' (activation): it is marked as updatable, but only convolution, innerProduct"},
    {"wrong weights",
     [](proto::Model& m) { layer(m, 2).mutable_innerproduct()->mutable_weights()->set_isupdatable(false); },
     "layer 'second' (innerProduct): it is updatable, but its weights are not marked"},
    {"wrong bias", [](proto::Model& m) { layer(m, 2).mutable_innerproduct()->mutable_bias()->set_isupdatable(false); },
     "layer 'second' (innerProduct): it is updatable, but its bias is not marked"},
    {"no bias",
     [](proto::Model& m) {
       layer(m, 2).mutable_innerproduct()->set_hasbias(false);
       layer(m, 2).mutable_innerproduct()->clear_bias();
     },
     ""},
    {"no layer", [](proto::Model& m) { layer(m, 2).set_isupdatable(false); },
     "the network is updatable, but none of its layers is"},
    {"quantized weights",
     [](proto::Model& m) { layer(m, 2).mutable_innerproduct()->mutable_weights()->mutable_quantization(); },
     "layer 'second' (innerProduct): it is updatable, but its weights are quantized"},
    {"quantized bias",
     [](proto::Model& m) { layer(m, 2).mutable_innerproduct()->mutable_bias()->mutable_quantization(); },
     "its bias is quantized"},
    {"quantized elsewhere",
     [](proto::Model& m) { layer(m, 0).mutable_innerproduct()->mutable_weights()->mutable_quantization(); }, ""},
    {"names", [](proto::Model& m) { params(m).mutable_losslayers(0)->set_name("relu"); },
     "two layers or losses are called 'relu'"},
    {"names of layers", [](proto::Model& m) { layer(m, 1).set_name("first"); },
     "two layers or losses are called 'first'"},
    {"no way", [](proto::Model& m) { between(m).mutable_activation()->mutable_elu(); },
     "layer 'relu' (activation): it passes no gradient on, but lies between the loss 'loss' and the updatable layer "
     "'first' (innerProduct)"},
    {"way", [](proto::Model& m) { between(m); }, ""},
    {"way of a sigmoid", [](proto::Model& m) { between(m).mutable_activation()->mutable_sigmoid(); }, ""},
    {"way of a batch norm", [](proto::Model& m) { between(m).mutable_batchnorm(); }, ""},
    {"way of a product", [](proto::Model& m) { between(m).mutable_batchedmatmul(); }, ""},
    {"softmax on the way", [](proto::Model& m) { between(m).mutable_softmax(); },
     "layer 'relu' (softmax): it passes no"},
    {"blocked beyond what is updated", [](proto::Model& m) { layer(m, 1).mutable_softmax(); }, ""},
    {"no loss", [](proto::Model& m) { params(m).clear_losslayers(); }, "expected one loss, got 0"},
    {"two losses",
     [](proto::Model& m) {
       auto* loss = params(m).add_losslayers();
       *loss = params(m).losslayers(0);
       loss->set_name("other");
     },
     "expected one loss, got 2"},
    {"loss of no kind", [](proto::Model& m) { params(m).mutable_losslayers(0)->clear_LossLayerType(); },
     "loss 'loss': expected categorical cross entropy or mean squared error, got neither"},
    {"loss of an input",
     [](proto::Model& m) { params(m).mutable_losslayers(0)->mutable_meansquarederrorlosslayer()->set_input("x"); },
     "loss 'loss': no layer computes its input 'x'"},
    {"target inside",
     [](proto::Model& m) { params(m).mutable_losslayers(0)->mutable_meansquarederrorlosslayer()->set_target("h"); },
     "loss 'loss': its target 'h' must come from the caller, but layer 'first' (innerProduct) computes it"},
    {"target without a name",
     [](proto::Model& m) { params(m).mutable_losslayers(0)->mutable_meansquarederrorlosslayer()->clear_target(); },
     "loss 'loss': it has no target"},
    {"cross entropy", [](proto::Model& m) { add_softmax(m); }, ""},
    {"cross entropy of N dimensions", [](proto::Model& m) { add_softmax(m, true); }, "",
     "Core ML's categorical cross entropy takes a softmax, not layer 'soft' (softmaxND)"},
    {"cross entropy without softmax",
     [](proto::Model& m) {
       add_softmax(m);
       params(m).mutable_losslayers(0)->mutable_categoricalcrossentropylosslayer()->set_input("y");
     },
     "loss 'loss': categorical cross entropy needs the result of a softmax, and layer 'second' (innerProduct) "
     "computes"},
    {"no optimizer", [](proto::Model& m) { params(m).clear_optimizer(); },
     "expected an SGD or Adam optimizer, got none"},
    {"no epochs", [](proto::Model& m) { params(m).clear_epochs(); }, "the update needs the parameter 'epochs'"},
    {"no shuffle", [](proto::Model& m) { params(m).clear_shuffle(); }, ""},
    {"no batch", [](proto::Model& m) { sgd(m).clear_minibatchsize(); }, "needs the parameter 'miniBatchSize'"},
    {"no rate", [](proto::Model& m) { sgd(m).clear_learningrate(); }, "needs the parameter 'learningRate'"},
    {"no momentum", [](proto::Model& m) { sgd(m).clear_momentum(); }, ""},
    {"adam", [](proto::Model& m) { adam(m); }, ""},
    {"no beta1", [](proto::Model& m) { adam(m).clear_beta1(); }, "needs the parameter 'beta1'"},
    {"no beta2", [](proto::Model& m) { adam(m).clear_beta2(); }, "needs the parameter 'beta2'"},
    {"no eps", [](proto::Model& m) { adam(m).clear_eps(); }, "needs the parameter 'eps'"},
    {"rate", [](proto::Model& m) { sgd(m).mutable_learningrate()->set_defaultvalue(2); },
     "parameter 'learningRate': expected a default from 0 to 1, got 2"},
    {"rate of NaN", [](proto::Model& m) { sgd(m).mutable_learningrate()->set_defaultvalue(NAN); },
     "parameter 'learningRate': expected a default from 0 to 1, got nan"},
    {"empty range", [](proto::Model& m) { sgd(m).mutable_learningrate()->mutable_range()->set_minvalue(2); },
     "parameter 'learningRate': the allowed range from 2 to 1 is empty"},
    {"momentum", [](proto::Model& m) { sgd(m).mutable_momentum()->set_defaultvalue(2); }, "",
     "parameter 'momentum': expected a default from 0 to 1, got 2"},
    {"batch of 0", [](proto::Model& m) { sgd(m).mutable_minibatchsize()->set_defaultvalue(0); },
     "parameter 'miniBatchSize': expected a positive default, got 0"},
    {"batch of no set", [](proto::Model& m) { sgd(m).mutable_minibatchsize()->set_defaultvalue(5); },
     "parameter 'miniBatchSize': expected a default among the allowed values 4, got 5"},
    {"batch of a set with 0", [](proto::Model& m) { sgd(m).mutable_minibatchsize()->mutable_set()->add_values(0); },
     "parameter 'miniBatchSize': expected a positive allowed value, got 0"},
    {"empty set", [](proto::Model& m) { sgd(m).mutable_minibatchsize()->mutable_set()->clear_values(); },
     "parameter 'miniBatchSize': the set of allowed values is empty"},
    {"epochs from 0", [](proto::Model& m) { params(m).mutable_epochs()->mutable_range()->set_maxvalue(5); },
     "parameter 'epochs': expected a positive lower bound, got 0"},
    {"seed", [](proto::Model& m) { params(m).mutable_seed()->set_defaultvalue(-3); }, ""},
    {"no training input", [](proto::Model& m) { m.mutable_description()->clear_traininginput(); },
     "expected at least two training inputs, an input of the model and the target 'y_true', got 0"},
    {"only other inputs", [](proto::Model& m) { m.mutable_description()->mutable_traininginput(0)->set_name("z"); },
     "expected an input of the model, with its type, among the training inputs"},
    {"input of another type",
     [](proto::Model& m) {
       m.mutable_description()->mutable_traininginput(0)->mutable_type()->mutable_multiarraytype()->set_shape(0, 4);
     },
     "expected an input of the model, with its type, among the training inputs"},
    {"no target", [](proto::Model& m) { m.mutable_description()->mutable_traininginput(1)->set_name("z"); },
     "the training inputs lack the target of the loss 'loss': 'y_true'"},
    {"damaged input", [](proto::Model& m) { m.mutable_description()->mutable_traininginput(1)->clear_type(); },
     "training input 'y_true': expected a feature type, got none"},
    {"not on the way",
     [](proto::Model& m) { params(m).mutable_losslayers(0)->mutable_meansquarederrorlosslayer()->set_input("h"); }, "",
     "layer 'second' (innerProduct) is updatable, but the loss 'loss' does not depend on it"},
};

proto::KNearestNeighborsClassifier& knn(proto::Model& m) { return *m.mutable_knearestneighborsclassifier(); }

constexpr Change kNeighbors[] = {
    {"valid", [](proto::Model&) {}, ""},
    {"no neighbors", [](proto::Model& m) { knn(m).mutable_numberofneighbors()->set_defaultvalue(0); },
     "parameter 'numberOfNeighbors': expected a positive default, got 0"},
    {"too many", [](proto::Model& m) { knn(m).mutable_numberofneighbors()->set_defaultvalue(1001); },
     "parameter 'numberOfNeighbors': expected a default from 1 to 1000, got 1001"},
    {"weighting", [](proto::Model& m) { knn(m).clear_WeightingScheme(); }, "it has no weighting scheme"},
    {"no input", [](proto::Model& m) { m.mutable_description()->clear_input(); }, "expected one input, got 0"},
    {"labels", [](proto::Model& m) { knn(m).mutable_stringclasslabels()->add_vector("more"); },
     "expected a label for each of 6 samples, got 7"},
    {"kinds of labels", [](proto::Model& m) { knn(m).set_defaultint64label(3); },
     "its labels are texts, and its default label is an integer"},
    {"no default",
     [](proto::Model& m) {
       knn(m).clear_DefaultClassLabel();
       knn(m).clear_ClassLabels();
       knn(m).mutable_nearestneighborsindex()->clear_floatsamples();
     },
     "it has neither samples nor a default label"},
    {"dimensions",
     [](proto::Model& m) { knn(m).mutable_nearestneighborsindex()->mutable_floatsamples(3)->add_vector(1); },
     "sample 3: expected 2 dimensions, got 3"},
    {"no dimensions", [](proto::Model& m) { knn(m).mutable_nearestneighborsindex()->set_numberofdimensions(0); },
     "expected samples of one dimension or more, got 0"},
    {"index", [](proto::Model& m) { knn(m).mutable_nearestneighborsindex()->clear_IndexType(); },
     "it has no kind of index"},
    {"leaves", [](proto::Model& m) { knn(m).mutable_nearestneighborsindex()->mutable_singlekdtreeindex(); },
     "expected a positive leaf size, got 0"},
    {"distance", [](proto::Model& m) { knn(m).mutable_nearestneighborsindex()->clear_DistanceFunction(); },
     "it has no distance function"},
};

proto::Pipeline& pipeline(proto::Model& m) { return *m.mutable_pipeline(); }

constexpr Change kPipelines[] = {
    {"valid", [](proto::Model&) {}, ""},
    {"last", [](proto::Model& m) { pipeline(m).mutable_models(1)->set_isupdatable(false); },
     "the pipeline is updatable, but its last model 'model1' is not"},
    {"first", [](proto::Model& m) { pipeline(m).mutable_models(0)->set_isupdatable(true); },
     "model 'model0' is updatable, but only the last model of a pipeline can be"},
    {"not the pipeline", [](proto::Model& m) { m.set_isupdatable(false); },
     "model 'model1' is updatable, but the pipeline that holds it is not"},
    {"nothing updatable",
     [](proto::Model& m) {
       m.set_isupdatable(false);
       pipeline(m).mutable_models(1)->set_isupdatable(false);
     },
     "none"},
    {"inner fault",
     [](proto::Model& m) {
       pipeline(m).mutable_models(1)->mutable_knearestneighborsclassifier()->clear_WeightingScheme();
     },
     "model 'model1': nearest-neighbors classifier: it has no weighting scheme"},
    {"a pipeline inside",
     [](proto::Model& m) {
       const proto::Model inner = m;
       pipeline(m).clear_models();
       *pipeline(m).add_models() = inner;
     },
     ""},
};

void expect_changes(const std::string& file, std::span<const Change> changes) {
  const std::string bytes = *read_file(folder() + file);
  for (const Change& change : changes) {
    SCOPED_TRACE(change.name);
    proto::Model model;
    ASSERT_TRUE(model.ParseFromString(bytes));
    change.change(model);
    const auto update = described(model.SerializeAsString());
    if (change.fault == std::string("none")) {
      EXPECT_FALSE(update.has_value());
      continue;
    }
    ASSERT_TRUE(update.has_value());
    if (change.fault[0] == '\0') {
      EXPECT_EQ(update->fault, "");
    }
    EXPECT_NE(update->fault.find(change.fault), std::string::npos) << update->fault;
    const bool expects_remark = change.remark[0] != '\0';
    EXPECT_EQ(update->remarks, expects_remark ? std::vector<std::string>{change.remark} : std::vector<std::string>());
  }
}

TEST(Update, NetworksKeepTheRules) { expect_changes("plain.mlmodel", kNetworks); }
TEST(Update, NearestNeighborsKeepTheRules) { expect_changes("neighbors_string.mlmodel", kNeighbors); }
TEST(Update, PipelinesKeepTheRules) { expect_changes("pipeline.mlmodel", kPipelines); }

TEST(Update, ClassifiersTakeTheLabelOrTheTarget) {
  proto::Model model;
  ASSERT_TRUE(model.ParseFromString(*read_file(folder() + "images.mlmodel")));
  auto& label = *model.mutable_description()->mutable_traininginput(1);
  label.mutable_type()->mutable_int64type();
  EXPECT_EQ(described(model.SerializeAsString())->fault,
            "training input 'digit': expected a text, as the classifier predicts, got an integer");
  label.set_name("other");
  EXPECT_EQ(described(model.SerializeAsString())->fault,
            "the training inputs lack the target of the loss 'cross entropy': 'digit' or 'digit_probabilities_true'");
  label.set_name("digit_probabilities_true");
  EXPECT_EQ(described(model.SerializeAsString())->fault, "");
}

}  // namespace
}  // namespace moka::test
