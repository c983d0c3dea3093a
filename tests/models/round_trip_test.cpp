// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>

#include "models/model_util.h"
#include "models_folder.h"
#include "moka/compiler.h"
#include "temporary_folder.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

/// All models of the project, and published ones.
std::vector<fs::path> models() {
  std::vector<fs::path> out = models_in(MOKA_GOLDEN);
  for (const fs::path& path : published_models()) out.push_back(path);
  std::sort(out.begin(), out.end());
  return out;
}

/// The files of a compiled model except analytics/, which has a hash of the source bytes.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& e : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(e.path(), folder).string();
    if (!e.is_regular_file() || name.starts_with("analytics/")) continue;
    std::ifstream in(e.path(), std::ios::binary);
    out[name].assign(std::istreambuf_iterator<char>(in), {});
  }
  return out;
}

/// A prediction, with new states if the model has states.
Features predict(const Model& model, const Features& inputs) {
  State state = model.new_state();
  PredictionOptions options;
  if (!model.function().states.empty()) options.state = &state;
  return model.predict(inputs, options);
}

Features inputs_of(const Model& model) {
  try {
    const Features inputs = sample_inputs(model, 7);
    predict(model, inputs);
    return inputs;
  } catch (const Exception&) {
    return model.random_inputs(7);  // of other shapes if the default shapes contradict the model
  }
}

/// Weights of a network have other offsets in other files. Kernels read aligned weights in place and copies of others,
/// and may sum in another order. Compiling folds batch norms: float16 weights are rounded once more, by 2^-11, in each
/// of a few dozen layers.
void expect_same_predictions(const Model& before, const fs::path& after, double bound = 1e-6) {
  const Model model = Model::load(after.string());
  const Features inputs = inputs_of(before);
  Features expected, got;
  const Features first = predict(before, inputs), second = predict(before, inputs), all = predict(model, inputs);
  for (const auto& [name, value] : first)
    if (difference(value, second.at(name)) == 0) {  // others are drawn anew in each prediction
      expected[name] = value;
      got[name] = all.at(name);
    }
  const double d = difference(got, expected);
  EXPECT_EQ(model.description().class_labels, before.description().class_labels);
  EXPECT_EQ(model.description().user_defined, before.description().user_defined);
  const bool inline_weights = before.description().type.find("neuralNetwork") != std::string::npos ||
                              before.description().type.starts_with("pipeline");
  if (inline_weights)
    EXPECT_LE(d, bound) << after.filename();
  else
    EXPECT_TRUE(identical(got, expected)) << after.filename() << ": " << d;
}

class RoundTrip : public testing::TestWithParam<fs::path> {};

/// Compiled and decompiled models predict the same as their source, and compiling again gives the same files.
TEST_P(RoundTrip, CompileAndDecompile) {
  std::optional<Model> source;
  try {
    source = Model::load(GetParam().string());
  } catch (const Exception& e) {
    GTEST_SKIP() << "refused when loading: " << e.what();
  }
  TemporaryFolder folder;
  fs::path compiled = GetParam();
  if (compiled.extension() != ".mlmodelc") {
    compiled = folder / "m.mlmodelc";
    compile_model(GetParam().string(), compiled.string());
    const bool folded = fs::exists(compiled / "model.espresso.net");
    expect_same_predictions(*source, compiled, folded ? 32 * std::ldexp(1, -11) : 1e-6);
    source = Model::load(compiled.string());
  }
  // metadata.json names a class after the model's file.
  const fs::path package = folder / (GetParam().stem().string() + ".mlpackage");
  decompile_model(compiled.string(), package.string());
  expect_same_predictions(*source, package);
  const fs::path file = folder / "m.mlmodel";
  try {
    decompile_model(compiled.string(), file.string());
    expect_same_predictions(*source, file);
  } catch (const Exception& e) {
    EXPECT_NE(std::string(e.what()).find("ends with .mlpackage"), std::string::npos) << e.what();
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
  }

  fs::create_directory(folder / "again");
  const fs::path again = folder / "again" / "m.mlmodelc";
  compile_model(package.string(), again.string());
  if (compiled == GetParam()) return;  // made by another compiler
  const auto expected = files_of(compiled), got = files_of(again);
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    // Layers that became part of others are no longer counted.
    if (name == "metadata.json" && fs::exists(compiled / "model.espresso.net")) continue;
    EXPECT_TRUE(got.at(name) == bytes) << name << " differs";
  }
}

std::string name_of(const testing::TestParamInfo<fs::path>& info) {
  std::string n = std::to_string(info.index) + info.param.filename().string();
  std::replace_if(
      n.begin(), n.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return n;
}
INSTANTIATE_TEST_SUITE_P(All, RoundTrip, testing::ValuesIn(models()), name_of);

}  // namespace
}  // namespace moka::test
