// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/classic_util.h"

namespace moka::test {
namespace {

class ClassicModels : public testing::Test {
 protected:
  void SetUp() override { MOKA_NEEDS_MODELS(models); }
  static std::string bytes(const std::string& path) {
    auto b = read_file(models_path() / path);
    EXPECT_TRUE(b.ok()) << path;
    return b.ok() ? *b : std::string();
  }
  static import::ImportedModel load(const std::string& path) {
    auto m = import_bytes(bytes(path));
    EXPECT_TRUE(m.ok()) << m.error().to_string();
    return m.ok() ? std::move(*m) : import::ImportedModel();
  }
  static proto::Model spec(const std::string& path) {
    proto::Model m;
    EXPECT_TRUE(m.ParseFromString(bytes(path)));
    return m;
  }
};

TEST_F(ClassicModels, SleepCalculatorIsItsLinearForm) {
  proto::Model s = spec("glm_sleep/SleepCalculator.mlmodel");
  const auto& glm = s.pipelineregressor().pipeline().models(1).glmregressor();
  ASSERT_EQ(glm.weights(0).value_size(), 3);
  auto model = load("glm_sleep/SleepCalculator.mlmodel");
  for (auto [wake, sleep, coffee] : {std::tuple{25200.0, 8.0, 1.0}, {21600.0, 7.25, 4.0}, {0.0, 0.0, 0.0}}) {
    auto y = predict(model, {{"wake", wake}, {"estimatedSleep", sleep}, {"coffee", coffee}});
    ASSERT_TRUE(y.ok()) << y.error().to_string();
    const auto& w = glm.weights(0).value();
    expect_value(y->at("actualSleep"), w[0] * wake + w[1] * sleep + w[2] * coffee + glm.offset(0), 1e-14,
                 "actualSleep");
  }
}

TEST_F(ClassicModels, SentimentPolarityIsItsLinearForm) {
  proto::Model s = spec("sentiment_glm/SentimentPolarity.mlmodel");
  const auto& pipeline = s.pipelineclassifier().pipeline();
  const auto& keys = pipeline.models(0).pipeline().models(0).dictvectorizer().stringtoindex().vector();
  const auto& glm = pipeline.models(1).glmclassifier();
  auto model = load("sentiment_glm/SentimentPolarity.mlmodel");
  std::string first = glm.stringclasslabels().vector(0), second = glm.stringclasslabels().vector(1);
  for (int start : {0, 4000, 12345}) {
    Json input = {{"keys", {"surelynotaword"}}, {"values", {5}}};
    double sum = 0;
    for (int i = start; i < start + 12; ++i) {
      input["keys"].push_back(keys[i]);
      input["values"].push_back(i % 3 + 1);
      sum += glm.weights(0).value(i) * (i % 3 + 1);
    }
    double p = 1 / (1 + std::exp(-(sum + glm.offset(0))));
    auto y = predict(model, {{"input", input}});
    ASSERT_TRUE(y.ok()) << y.error().to_string();
    expect_value(y->at("classLabel"), p > 0.5 ? second : first, 0, "classLabel");
    expect_value(y->at("classProbability"), {{"keys", {first, second}}, {"values", {1 - p, p}}}, 1e-12,
                 "classProbability");
  }
}

/// Core ML's definition of a binary forest, one node at a time.
double walk(const proto::TreeEnsembleParameters& trees, const std::vector<double>& x) {
  std::map<std::pair<uint64_t, uint64_t>, const proto::TreeEnsembleParameters::TreeNode*> nodes;
  std::map<uint64_t, bool> ids;
  std::set<std::pair<uint64_t, uint64_t>> children;
  for (const auto& n : trees.nodes()) {
    nodes[{n.treeid(), n.nodeid()}] = &n;
    if (n.nodebehavior() == 6) continue;
    children.insert({n.treeid(), n.truechildnodeid()});
    children.insert({n.treeid(), n.falsechildnodeid()});
  }
  double y = trees.basepredictionvalue(0);
  for (const auto& [key, root] : nodes) {
    if (children.contains(key)) continue;
    const auto* n = root;
    while (n->nodebehavior() != 6) {
      EXPECT_EQ(n->nodebehavior(), 0);
      bool yes = x[n->branchfeatureindex()] <= n->branchfeaturevalue();
      n = nodes.at({key.first, yes ? n->truechildnodeid() : n->falsechildnodeid()});
    }
    y += n->evaluationinfo(0).evaluationvalue();
  }
  return y;
}

TEST_F(ClassicModels, RandomForestIsItsTrees) {
  proto::Model s = spec("random_forest/RandomForest.mlmodel");
  const auto& pipeline = s.pipelineclassifier().pipeline();
  const auto& columns = pipeline.models(0).featurevectorizer().inputlist();
  const auto& forest = pipeline.models(1).treeensembleclassifier();
  ASSERT_EQ(forest.treeensemble().numpredictiondimensions(), 1u);
  auto model = load("random_forest/RandomForest.mlmodel");
  const auto& label = model.description.functions[0].predicted_feature_name;
  for (int i = 0; i < 200; ++i) {
    Json inputs;
    std::vector<double> x;
    for (const auto& c : columns) {
      bool flag = c.inputcolumn().find("color") == 0;
      x.push_back(flag ? (i + static_cast<int>(x.size())) % 4 == 0
                       : 0.37 * ((i * 31 + 7 * static_cast<int>(x.size())) % 120));
      inputs[c.inputcolumn()] = x.back();
    }
    double p = walk(forest.treeensemble(), x);
    auto y = predict(model, inputs);
    ASSERT_TRUE(y.ok()) << y.error().to_string();
    int best = p > 1 - p ? 1 : 0;
    Json expected = forest.has_stringclasslabels() ? Json(forest.stringclasslabels().vector(best))
                                                   : Json(forest.int64classlabels().vector(best));
    expect_value(y->at(label), expected, 0, "row " + std::to_string(i));
  }
}

TEST_F(ClassicModels, OneHotSimpleIsItsTable) {
  proto::Model s = spec("misc_small/onehot_simple.mlmodel");
  auto model = load("misc_small/onehot_simple.mlmodel");
  Json input = Json::array(), expected = Json::array();
  for (const auto& m : s.pipeline().models()) {
    if (!m.has_onehotencoder()) continue;
    const auto& categories = m.onehotencoder().int64categories().vector();
    int pick = static_cast<int>(input.size()) % categories.size();
    input.push_back(static_cast<double>(categories[pick]));
    for (int i = 0; i < categories.size(); ++i) expected.push_back(i == pick ? 1.0 : 0.0);
  }
  ASSERT_EQ(input.size(), 8u);
  auto y = predict(model, {{"input", input}});
  ASSERT_TRUE(y.ok()) << y.error().to_string();
  expect_value(y->at("transformed_features"), expected, 0, "transformed_features");
  input[0] = 1e6;
  auto unknown = predict(model, {{"input", input}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), ErrorCode::data);
}

/// Scores recorded by the library that trained them; features as it encodes numbers.
TEST_F(ClassicModels, BoostedTreesGiveTheRecordedScores) {
  for (const std::string name :
       {"1000_numeric_items_no_context_small_binary_reward", "2_numeric_items_no_context_binary_reward"}) {
    const std::string folder = models_path() / "boosted_trees/synthetic_models" / name;
    auto bytes = gunzip(folder + "/model.mlmodel.gz");
    ASSERT_TRUE(bytes.ok());
    auto model = import_bytes(*bytes);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    Json test = Json::parse(*read_file(folder + "/" + name + ".json"));
    double noise = test["test_case"]["noise"], worst = 0;
    const Json& items = test["test_case"]["candidates"];
    const Json& scores = test["expected_output"][0]["scores"];
    ASSERT_EQ(items.size(), scores.size());
    for (size_t i = 0; i < items.size(); ++i) {
      double x =
          static_cast<float>((items[i].get<double>() + noise * std::ldexp(1, -142)) * (1 + noise * std::ldexp(1, -17)));
      auto y = predict(*model, {{"item", x}});
      ASSERT_TRUE(y.ok()) << y.error().to_string();
      worst = std::max(worst, std::abs(load_f64(y->begin()->second.tensor.view(), 0) - scores[i].get<double>()));
    }
    EXPECT_LE(worst, 4e-6) << name;
  }
}

TEST_F(ClassicModels, RefusesWhatOnlyAppleHas) {
  for (auto [path, type] : {std::pair{"nsfw_visionfeatureprint/NSFW.mlmodel", "visionFeaturePrint"},
                            {"rules_apple_samples/sample.mlmodel",
                             "416 bytes in a container of Natural Language with method 4 (maximum entropy)"}}) {
    auto m = import_bytes(bytes(path));
    ASSERT_FALSE(m.ok());
    EXPECT_EQ(m.error().code(), ErrorCode::unsupported);
    EXPECT_NE(m.error().to_string().find(type), std::string::npos) << m.error().to_string();
  }
}

}  // namespace
}  // namespace moka::test
