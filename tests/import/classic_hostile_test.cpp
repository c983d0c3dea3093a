// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include "format/proto/model.pb.h"
#include "import/classic_util.h"

namespace moka::test {
namespace {

using proto::Model;

void array_feature(proto::FeatureDescription* f, const std::string& name, int64_t size) {
  f->set_name(name);
  f->mutable_type()->mutable_multiarraytype()->add_shape(size);
  f->mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::DOUBLE);
}

Model regressor(int64_t inputs) {
  Model m;
  m.set_specificationversion(1);
  array_feature(m.mutable_description()->add_input(), "x", inputs);
  auto* y = m.mutable_description()->add_output();
  y->set_name("y");
  y->mutable_type()->mutable_doubletype();
  m.mutable_description()->set_predictedfeaturename("y");
  return m;
}

Model classifier(int64_t inputs) {
  Model m = regressor(inputs);
  m.mutable_description()->mutable_output(0)->mutable_type()->mutable_int64type();
  return m;
}

proto::TreeEnsembleParameters::TreeNode* node(proto::TreeEnsembleParameters* p, uint64_t tree, uint64_t id) {
  auto* n = p->add_nodes();
  n->set_treeid(tree);
  n->set_nodeid(id);
  n->set_nodebehavior(proto::TreeEnsembleParameters::TreeNode::LeafNode);
  return n;
}

void branch(proto::TreeEnsembleParameters* p, uint64_t id, uint64_t yes, uint64_t no, uint64_t feature = 0) {
  auto* n = node(p, 0, id);
  n->set_nodebehavior(proto::TreeEnsembleParameters::TreeNode::BranchOnValueLessThan);
  n->set_truechildnodeid(yes);
  n->set_falsechildnodeid(no);
  n->set_branchfeatureindex(feature);
}

Model trees(const std::function<void(proto::TreeEnsembleParameters*)>& fill) {
  Model m = regressor(2);
  auto* p = m.mutable_treeensembleregressor()->mutable_treeensemble();
  p->set_numpredictiondimensions(1);
  p->add_basepredictionvalue(0);
  fill(p);
  return m;
}

void expect_refused(const Model& m, ErrorCode code, const std::string& words) {
  auto r = import_bytes(m.SerializeAsString());
  ASSERT_FALSE(r.ok()) << "expected: " << words;
  EXPECT_EQ(r.error().code(), code) << r.error().to_string();
  EXPECT_NE(r.error().to_string().find(words), std::string::npos) << r.error().to_string();
}

TEST(ClassicHostile, TreeShapes) {
  auto bad = ErrorCode::malformed;
  expect_refused(trees([](auto*) {}), bad, "without nodes");
  expect_refused(trees([](auto* p) { branch(p, 0, 1, 2), node(p, 0, 1); }), bad, "there is no child 2");
  expect_refused(trees([](auto* p) { node(p, 0, 1), node(p, 0, 1); }), bad, "used twice");
  expect_refused(trees([](auto* p) { node(p, 0, 1), node(p, 0, 2); }), bad, "second root");
  expect_refused(trees([](auto* p) { branch(p, 0, 0, 1), node(p, 0, 1); }), bad, "cycle");
  expect_refused(trees([](auto* p) { branch(p, 0, 1, 2), branch(p, 1, 3, 3), branch(p, 2, 3, 3), node(p, 0, 3); }), bad,
                 "two parents");
  expect_refused(
      trees([](auto* p) { node(p, 0, 9), branch(p, 0, 1, 2), branch(p, 1, 0, 3), node(p, 0, 2), node(p, 0, 3); }), bad,
      "cycle");
  expect_refused(trees([](auto* p) { node(p, 0, 1)->add_evaluationinfo()->set_evaluationindex(uint64_t{1} << 40); }),
                 bad, "evaluation index");
  expect_refused(trees([](auto* p) { p->set_numpredictiondimensions(uint64_t{1} << 62), node(p, 0, 1); }), bad,
                 "base prediction");
  expect_refused(trees([](auto* p) { branch(p, 0, 1, 2, ~uint64_t{0}), node(p, 0, 1), node(p, 0, 2); }), bad,
                 "feature index");
  auto m =
      import_bytes(trees([](auto* p) { branch(p, 0, 1, 2, 2), node(p, 0, 1), node(p, 0, 2); }).SerializeAsString());
  ASSERT_FALSE(m.ok());
  EXPECT_NE(m.error().to_string().find("feature 2 of 2"), std::string::npos) << m.error().to_string();
}

TEST(ClassicHostile, TreesAsDeepAsTheyLike) {
  Model m = trees([](auto* p) {
    for (uint64_t i = 0; i < 20000; ++i) branch(p, i, i + 1, 100000 + i), node(p, 0, 100000 + i);
    node(p, 0, 20000)->add_evaluationinfo()->set_evaluationvalue(7);
  });
  auto model = import_bytes(m.SerializeAsString());
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  auto y = predict(*model, {{"x", {-1.0, 0.0}}});
  ASSERT_TRUE(y.ok());
  expect_value(y->at("y"), 7.0, 0, "y");
}

TEST(ClassicHostile, LinearModels) {
  Model m = regressor(2);
  m.mutable_glmregressor();
  expect_refused(m, ErrorCode::malformed, "without weights");
  auto* row = m.mutable_glmregressor()->add_weights();
  row->add_value(1);
  m.mutable_glmregressor()->add_offset(0);
  auto r = import_bytes(m.SerializeAsString());
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().to_string().find("expected 1 elements, got 2"), std::string::npos) << r.error().to_string();
  m.mutable_glmregressor()->add_weights()->mutable_value()->Resize(3, 1.0);
  m.mutable_glmregressor()->add_offset(0);
  expect_refused(m, ErrorCode::malformed, "row 1");
  m.mutable_glmregressor()->add_offset(0);
  expect_refused(m, ErrorCode::malformed, "offsets");

  Model c = classifier(1);
  c.mutable_glmclassifier()->add_weights()->add_value(1);
  expect_refused(c, ErrorCode::malformed, "class labels");
  for (int i = 0; i < 4; ++i) c.mutable_glmclassifier()->mutable_int64classlabels()->add_vector(i);
  expect_refused(c, ErrorCode::malformed, "rows of weights");
}

TEST(ClassicHostile, SupportVectorMachines) {
  Model m = regressor(2);
  auto* svm = m.mutable_supportvectorregressor();
  expect_refused(m, ErrorCode::malformed, "without support vectors");
  auto* v = svm->mutable_sparsesupportvectors()->add_vectors();
  auto* n = v->add_nodes();
  n->set_index(2000000000);
  n->set_value(1);
  expect_refused(m, ErrorCode::malformed, "coefficients");
  svm->mutable_coefficients()->add_alpha(1);
  expect_refused(m, ErrorCode::malformed, "without a kernel");
  svm->mutable_kernel()->mutable_linearkernel();
  auto r = import_bytes(m.SerializeAsString());
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().to_string().find("column 1999999999"), std::string::npos) << r.error().to_string();
  for (int index : {0, -5}) {
    n->set_index(index);
    expect_refused(m, ErrorCode::malformed, "index above 0");
  }

  Model c = classifier(2);
  auto* s = c.mutable_supportvectorclassifier();
  s->mutable_kernel()->mutable_linearkernel();
  s->mutable_int64classlabels()->add_vector(0);
  s->mutable_int64classlabels()->add_vector(1);
  s->mutable_densesupportvectors()->add_vectors()->mutable_values()->Resize(2, 1.0);
  s->add_numberofsupportvectorsperclass(2147483647);
  s->add_numberofsupportvectorsperclass(2147483647);
  expect_refused(c, ErrorCode::malformed, "support vectors, got 1");
  s->set_numberofsupportvectorsperclass(0, -1);
  s->set_numberofsupportvectorsperclass(1, 2);
  expect_refused(c, ErrorCode::malformed, "-1 support vectors");
  s->set_numberofsupportvectorsperclass(0, 0);
  s->set_numberofsupportvectorsperclass(1, 1);
  expect_refused(c, ErrorCode::malformed, "rows of coefficients");
  s->add_coefficients();
  expect_refused(c, ErrorCode::malformed, "1 coefficients in each row, got 0");
  s->mutable_coefficients(0)->add_alpha(1);
  expect_refused(c, ErrorCode::malformed, "values of rho");
  s->add_rho(0);
  s->add_proba(0);
  expect_refused(c, ErrorCode::malformed, "values of probB");
}

TEST(ClassicHostile, NeighborsAndRecommenders) {
  Model m = classifier(2);
  auto* knn = m.mutable_knearestneighborsclassifier();
  expect_refused(m, ErrorCode::malformed, "neither samples nor a default");
  knn->mutable_nearestneighborsindex()->set_numberofdimensions(2);
  knn->mutable_nearestneighborsindex()->add_floatsamples()->add_vector(1);
  expect_refused(m, ErrorCode::malformed, "class label for each");
  knn->mutable_int64classlabels()->add_vector(5);
  expect_refused(m, ErrorCode::malformed, "expected 2 dimensions, got 1");
  knn->mutable_nearestneighborsindex()->mutable_floatsamples(0)->add_vector(1);
  expect_refused(m, ErrorCode::malformed, "at least one neighbor");

  Model r = regressor(1);
  r.mutable_itemsimilarityrecommender()->add_itemitemsimilarities()->set_itemid(~uint64_t{0} - 1);
  expect_refused(r, ErrorCode::malformed, "only 1 entries");
}

TEST(ClassicHostile, Pipelines) {
  Model m = regressor(1);
  m.mutable_pipeline();
  expect_refused(m, ErrorCode::malformed, "without models");
  Model inner = regressor(1);
  inner.mutable_description()->mutable_input(0)->set_name("z");
  inner.mutable_glmregressor()->add_weights()->add_value(1);
  *m.mutable_pipeline()->add_models() = inner;
  expect_refused(m, ErrorCode::malformed, "model 0 of the pipeline (glmRegressor): no earlier model");
  m.mutable_pipeline()->add_names("first");
  expect_refused(m, ErrorCode::malformed, "model 0 of the pipeline ('first', glmRegressor): no earlier model");
  expect_refused(m, ErrorCode::malformed, "gives 'z'");
  *m.mutable_pipeline()->mutable_models(0) = Model();
  expect_refused(m, ErrorCode::malformed, "model 0 of the pipeline ('first'): it holds no model of a known type");
  inner.mutable_description()->mutable_input(0)->set_name("x");
  inner.mutable_description()->mutable_output(0)->set_name("w");
  *m.mutable_pipeline()->mutable_models(0) = inner;
  expect_refused(m, ErrorCode::malformed, "no model gives the output 'y'");

  Model nested = regressor(1);
  nested.mutable_glmregressor()->add_weights()->add_value(3);
  for (int depth = 0; depth < 40; ++depth) {
    Model outer = regressor(1);
    *outer.mutable_pipeline()->add_models() = nested;
    nested = outer;
    auto r = import_bytes(nested.SerializeAsString());
    EXPECT_EQ(r.ok(), depth < 16) << depth;
    if (r.ok()) {
      auto y = predict(*r, {{"x", {2.0}}});
      ASSERT_TRUE(y.ok());
      expect_value(y->at("y"), 6.0, 0, "y");
    }
  }
}

TEST(ClassicHostile, RefusesUnsupportedTypesByName) {
  auto refused = [](const std::function<void(Model&)>& set, const std::string& name) {
    Model m = regressor(1);
    set(m);
    expect_refused(m, ErrorCode::unsupported, name);
  };
  refused([](Model& m) { m.mutable_custommodel()->set_classname("Mine"); }, "customModel 'Mine'");
  refused(
      [](Model& m) {
        m.mutable_linkedmodel()->mutable_linkedmodelfile()->mutable_linkedmodelfilename()->set_defaultvalue(
            "other.mlmodelc");
      },
      "other.mlmodelc");
  refused([](Model& m) { m.mutable_wordtagger(); }, "wordTagger");
  refused(
      [](Model& m) {
        m.mutable_wordembedding()->set_revision(2);
        m.mutable_wordembedding()->set_modelparameterdata("\xde\xd3V\x09\x04");
      },
      "(revision 2, 5 bytes that begin with de d3 56 09); register_model(\"wordEmbedding.2\"");
  refused(
      [](Model& m) {
        const char header[] = "\xde\xd3V\x09\x08\0\x07\0\x01\0\x01\0\x04\0\0";
        m.mutable_gazetteer()->set_modelparameterdata(header, sizeof header);
      },
      "16 bytes in a container of Natural Language with method 8 (word embedding) and 4 parts");
  refused([](Model& m) { m.mutable_wordtagger()->set_modelparameterdata("bplist00 and more"); },
          "17 bytes in a property list");
  refused([](Model& m) { m.mutable_textclassifier(); }, "(revision 0, 0 bytes)");
  refused([](Model& m) { m.mutable_gazetteer(); }, "gazetteer");
  refused([](Model& m) { m.mutable_wordembedding(); }, "wordEmbedding");
  refused([](Model& m) { m.mutable_textclassifier(); }, "textClassifier");
  refused([](Model& m) { m.mutable_visionfeatureprint(); }, "visionFeaturePrint");
  refused([](Model& m) { m.mutable_audiofeatureprint(); }, "audioFeaturePrint");
}

TEST(ClassicHostile, WeightsOfAProbit) {
  const auto refused = [](auto change, const std::string& message) {
    Model m;
    ASSERT_TRUE(m.ParseFromString(*read_file(golden_folder() + "/probit.mlmodel")));
    change(*m.mutable_bayesianprobitregressor());
    expect_refused(m, ErrorCode::malformed, message);
  };
  using Probit = proto::BayesianProbitRegressor;
  refused([](Probit& m) { m.mutable_bias()->set_precision(0); }, "bias: bayesianProbitRegressor: expected a precision");
  refused([](Probit& m) { m.mutable_features(0)->mutable_weights(0)->mutable_featureweight()->set_precision(-1); },
          "expected a precision above 0, got -1");
  refused([](Probit& m) { m.mutable_features(0)->mutable_weights(0)->mutable_featureweight()->set_mean(NAN); },
          "expected a finite mean");
  refused([](Probit& m) { m.mutable_features(0)->set_featureid(4); }, "expected features below 4, got 4");
  refused([](Probit& m) { *m.add_features() = m.features(0); }, "has two weights for the value");
  refused([](Probit& m) { m.set_regressioninputfeaturename("none"); }, "input 'none' is not described");
}

/// Damaged copies of every golden model. Each gives an error or a prediction.
TEST(ClassicHostile, MutatedModelsAreErrorsOrModels) {
  std::mt19937 random(1);
  int imported = 0, refused = 0;
  for (const auto& e : std::filesystem::directory_iterator(golden_folder())) {
    if (e.path().extension() != ".mlmodel") continue;
    std::string good = *read_file(e.path().string());
    Json golden = Json::parse(*read_file(e.path().parent_path() / (e.path().stem().string() + ".json")));
    for (int i = 0; i < 60; ++i) {
      std::string bytes = good;
      for (unsigned k = 0; k < 1 + random() % 3; ++k)
        bytes[random() % bytes.size()] ^= static_cast<char>(1u << (random() % 8));
      if (random() % 8 == 0) bytes.resize(random() % bytes.size());
      auto model = import_bytes(bytes);
      if (!model.ok()) {
        ++refused;
        EXPECT_NE(model.error().code(), ErrorCode::internal) << e.path() << ": " << model.error().to_string();
        continue;
      }
      ++imported;
      (void)predict(*model, golden["cases"][0]["inputs"]);
    }
  }
  EXPECT_GT(imported, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace moka::test
