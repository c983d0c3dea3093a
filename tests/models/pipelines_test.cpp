// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "models/model_util.h"
#include "models/nn_case_util.h"

/// The pipelines of tests/golden/pipeline_models.py.
namespace moka::test {
namespace {

std::string path_of(const std::string& name) { return std::string(MOKA_GOLDEN) + "/pipelines/" + name + ".mlmodel"; }

Json truth() {
  std::ifstream file(std::string(MOKA_GOLDEN) + "/pipelines/truth.json");
  return Json::parse(file);
}

class Pipelines : public testing::TestWithParam<Json> {};

TEST_P(Pipelines, MatchNumPy) {
  const std::string name = GetParam().at("model");
  for (const char* device : {"cpu", "reference"}) {
    ModelConfiguration configuration;
    configuration.device = device;
    const Model m = Model::load(path_of(name), configuration);
    // A second pass over the predictions begins with new states.
    for (int again = 0; again < 2; again++) {
      State state = m.new_state();
      PredictionOptions options;
      if (!m.function().states.empty()) options.state = &state;
      for (const Json& step : GetParam().at("steps")) {
        Features in;
        for (const auto& [input, v] : step.at("inputs").items()) in[input] = array(v);
        const Features out = m.predict(in, options);
        for (const auto& [output, want] : step.at("outputs").items()) {
          if (const auto* number = std::get_if<double>(&out.at(output))) {
            EXPECT_NEAR(*number, want.at("data")[0].get<double>(), 1e-5) << output << " on " << device;
            continue;
          }
          const MultiArray got = out.array(output).converted(DataType::float32);
          EXPECT_LE(difference(FeatureValue(got), FeatureValue(array(want))), 2e-5) << output << " on " << device;
        }
      }
    }
  }
}

TEST_P(Pipelines, PredictBatches) {
  const std::string name = GetParam().at("model");
  const Model m = Model::load(path_of(name));
  if (!m.function().states.empty()) GTEST_SKIP() << "a batch has no states";
  std::vector<Features> all;
  for (const Json& step : GetParam().at("steps")) {
    all.emplace_back();
    for (const auto& [input, v] : step.at("inputs").items()) all.back()[input] = array(v);
  }
  const std::vector<Features> out = m.predict_batch(all);
  ASSERT_EQ(out.size(), all.size());
  for (size_t i = 0; i < out.size(); i++) EXPECT_EQ(difference(out[i], m.predict(all[i])), 0) << i;
}

INSTANTIATE_TEST_SUITE_P(Golden, Pipelines, testing::ValuesIn(truth().get<std::vector<Json>>()),
                         [](const auto& info) { return info.param.at("model").template get<std::string>(); });

std::vector<std::string> state_names(const Model& m) {
  std::vector<std::string> names;
  for (const auto& f : m.function().states) names.push_back(f.name);
  return names;
}

TEST(PipelineStates, AreDescribedOnce) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(state_names(Model::load(path_of("state"))), (Names{"memory"}));
  EXPECT_EQ(state_names(Model::load(path_of("state_described"))), (Names{"memory"}));
  EXPECT_EQ(state_names(Model::load(path_of("state_shared"))), (Names{"memory"}));
  EXPECT_EQ(state_names(Model::load(path_of("state_nested"))), (Names{"memory", "other"}));
}

TEST(PipelineDepth, IsLimited) {
  try {
    Model::load(path_of("too_deep"));
    ADD_FAILURE() << "expected an error";
  } catch (const Exception& e) {
    EXPECT_NE(std::string(e.what()).find("nested more than 16 deep"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace moka::test
