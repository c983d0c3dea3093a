// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "models/model_util.h"
#include "models/nn_case_util.h"
#include "moka/compiler.h"
#include "temporary_folder.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

/// Networks of one layer with a compiled form that no published pair of models has.
const std::set<std::string> kLayers = {"conv_linear_8_bits", "conv_float16", "elementwise_max",
                                       "elementwise_min",    "deconv_valid", "deconv_groups"};
/// Networks that keep their specification because their compiled form is not known.
const std::set<std::string> kSpecifications = {"conv_lut_8_bits", "conv_linear_4_bits", "deconvolution_of_weights",
                                               "lstm_plain", "batchnorm"};

/// A compiled network and one that was decompiled again predict what NumPy does.
class NnLayersCompile : public testing::TestWithParam<Case> {};

TEST_P(NnLayersCompile, MatchesNumPy) {
  const Case& c = GetParam();
  const TemporaryFolder folder;
  std::ofstream(folder / "m.mlmodel", std::ios::binary) << c.specification();
  const auto embedded = compile_model((folder / "m.mlmodel").string(), (folder / "m.mlmodelc").string());
  const bool layers = fs::exists(folder / "m.mlmodelc" / "model.espresso.net");
  EXPECT_EQ(embedded.empty(), layers);
  if (kLayers.contains(c.name)) {
    EXPECT_TRUE(layers);
  }
  if (kSpecifications.contains(c.name)) {
    EXPECT_FALSE(layers);
  }
  decompile_model((folder / "m.mlmodelc").string(), (folder / "again.mlmodel").string());
  for (const char* name : {"m.mlmodelc", "again.mlmodel"}) {
    const Features out = Model::load((folder / name).string()).predict(c.inputs());
    for (const auto& [output, want] : c.data.at("outputs").items())
      EXPECT_LE(difference(FeatureValue(out.array(output).converted(DataType::float32)), FeatureValue(array(want))),
                c.tolerance())
          << output << " of " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, NnLayersCompile,
                         testing::ValuesIn(cases({"activations", "control", "convolutions", "corners", "elementwise",
                                                  "exact_layers", "images", "normalizations", "poolings", "products",
                                                  "ranks", "rare", "recurrent", "recurrent_numbers", "remaining",
                                                  "shapes", "sizes"})),
                         [](const auto& info) { return info.param.group + "_" + info.param.name; });

}  // namespace
}  // namespace moka::test
