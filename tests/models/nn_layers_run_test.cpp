// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "models/model_util.h"
#include "models/nn_case_util.h"

namespace moka::test {
namespace {

/// As described, after the passes, and planned. Planning differs from interpretation for loops that grow and for
/// computed shapes.
class NnLayersRuns : public testing::TestWithParam<Case> {};

TEST_P(NnLayersRuns, MatchesNumPy) {
  const Case& c = GetParam();
  const Features in = c.inputs();
  for (const char* device : {"cpu", "reference"}) {
    ModelConfiguration configuration;
    configuration.device = device;
    Model m = c.model(configuration);
    for (int again = 0; again < 2; again++) {
      Features out = m.predict(in);
      for (const auto& [name, want] : c.data.at("outputs").items())
        EXPECT_LE(difference(FeatureValue(out.array(name).converted(DataType::float32)), FeatureValue(array(want))),
                  c.tolerance())
            << name << " on " << device;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, NnLayersRuns,
                         testing::ValuesIn(cases({"exact_layers", "corners", "recurrent_numbers", "control", "ranks",
                                                  "rare", "sizes", "remaining"})),
                         [](const auto& info) { return info.param.group + "_" + info.param.name; });

TEST(NnLayersRun, AnIndexOutsideIsToldWhenItIsMet) {
  for (const Case& c : cases({"corners"})) {
    if (c.name != "slice_beyond_described") continue;
    Model m = c.model();
    try {
      m.predict({{"x", MultiArray::of(std::vector<float>(6), {2, 3})}});
      ADD_FAILURE() << "expected an error";
    } catch (const Exception& e) {
      EXPECT_NE(std::string(e.what()).find("index 3 is outside of axis 1 of size 3"), std::string::npos) << e.what();
    }
    return;
  }
  FAIL() << "no such case";
}

}  // namespace
}  // namespace moka::test
