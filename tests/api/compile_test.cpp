// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <filesystem>
#include <fstream>

#include "api/api_util.h"
#include "models_folder.h"
#include "moka/compiler.h"
#include "temporary_folder.h"

namespace moka {
namespace {

namespace fs = std::filesystem;

/// Compiles a copy of `source`, removes the copy, and expects the compiled model to predict the same.
void compile_and_compare(const fs::path& source) {
  test::TemporaryFolder folder;
  fs::path copy = folder / source.filename(), compiled = folder / "m.mlmodelc";
  fs::copy(source, copy, fs::copy_options::recursive);
  compile_model(copy.string(), compiled.string());
  fs::remove_all(copy);
  Model before = Model::load(source.string()), after = Model::load(compiled.string());
  ASSERT_EQ(before.function().outputs.size(), after.function().outputs.size());
  Features inputs = random_inputs(before.function());
  Features expected = before.predict(inputs), got = after.predict(inputs);
  for (const auto& [name, value] : expected) {
    if (const auto* a = std::get_if<MultiArray>(&value)) {
      const MultiArray& b = got.array(name);
      ASSERT_EQ(a->shape(), b.shape()) << name;
      EXPECT_EQ(0, std::memcmp(a->data(), b.data(), static_cast<size_t>(a->count()) * size_of(a->type()))) << name;
    } else {
      EXPECT_EQ(describe(value), describe(got.at(name))) << name;
    }
  }
  EXPECT_EQ(before.description().class_labels, after.description().class_labels);
  EXPECT_EQ(before.description().specification_version, after.description().specification_version);
}

class Compile : public testing::TestWithParam<const char*> {};

TEST_P(Compile, ACompiledModelNeedsNoOtherFileAndPredictsTheSame) {
  MOKA_NEEDS_MODELS(models);
  compile_and_compare(*models / GetParam());
}
INSTANTIATE_TEST_SUITE_P(Models, Compile,
                         testing::Values("basic_pitch/nmp.mlpackage", "silero_vad/unified_palette_4bit.mlpackage",
                                         "random_forest/RandomForest.mlmodel",
                                         "sentiment_glm/SentimentPolarity.mlmodel", "rnn_forecast/MyModel.mlpackage",
                                         "image_nn/MNIST.mlmodel"));

// Compiling folds batch norms, so the reference is a model that Apple's compiler produced.
TEST(CompileModel, ANetworkPredictsAsCompiledByApple) {
  MOKA_NEEDS_MODELS(models);
  test::TemporaryFolder folder;
  const std::string compiled = (folder / "m.mlmodelc").string();
  compile_model((*models / "card_detector/SSDOcr.mlmodel").string(), compiled);
  Model ours = Model::load(compiled), apple = Model::load((*models / "card_detector/SSDOcr.mlmodelc").string());
  const Features inputs = random_inputs(apple.function());
  const Features expected = apple.predict(inputs), got = ours.predict(inputs);
  for (const char* name : {"scores", "boxes", "filter"}) {
    const MultiArray &a = expected.array(name), &b = got.array(name);
    ASSERT_EQ(a.shape(), b.shape());
    for (int64_t i = 0; i < a.count(); ++i) ASSERT_NEAR(a.at(i), b.at(i), 1e-4) << name << " " << i;
  }
}

std::vector<std::byte> contents(const fs::path& path) {
  std::vector<std::byte> out(fs::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
  return out;
}

TEST(ModelAssetView, LoadsAndCompilesWithoutACopy) {
  const fs::path package = fs::path(MOKA_GOLDEN) / "cached" / "model.mlpackage";
  using Files = std::pair<std::vector<std::byte>, std::vector<std::byte>>;
  auto files = std::make_shared<Files>(contents(package / "Data/com.apple.CoreML/model.mlmodel"),
                                       contents(package / "Data/com.apple.CoreML/weights/weight.bin"));
  const std::weak_ptr<Files> alive = files;
  ModelAssetView view{files->first, {{"weights/weight.bin", files->second}}, files};
  test::TemporaryFolder folder;
  const std::string compiled = (folder / "m.mlmodelc").string();
  compile_model(view, compiled);
  {
    const Model model = Model::load(view), again = Model::load(package.string());
    view = {};
    files.reset();
    EXPECT_FALSE(alive.expired());  // the model reads its weights from this memory
    const Features inputs = random_inputs(again.function());
    const Features expected = again.predict(inputs), got = model.predict(inputs),
                   from = Model::load(compiled).predict(inputs);
    for (const auto& [name, value] : expected) {
      const auto* array = std::get_if<MultiArray>(&value);
      ASSERT_NE(array, nullptr);
      EXPECT_EQ(test::values(*array), test::values(got.array(name)));
      EXPECT_EQ(test::values(*array), test::values(from.array(name)));
    }
  }
  EXPECT_TRUE(alive.expired());
}

TEST(CompileModel, ReplacesOnlyCompiledModelsAndCompilesOnce) {
  test::TemporaryFolder folder;
  MOKA_NEEDS_MODELS(models);
  fs::path source = *models / "basic_pitch/nmp.mlpackage";
  fs::path compiled = folder / "m.mlmodelc";
  compile_model(source.string(), compiled.string());
  compile_model(source.string(), compiled.string());
  EXPECT_TRUE(fs::exists(compiled / "coremldata.bin"));
  fs::create_directories(folder / "other.mlmodelc/letters");
  EXPECT_THROW(compile_model(source.string(), (folder / "other.mlmodelc").string(), {.overwrite = Overwrite::any}),
               Exception);
  EXPECT_TRUE(fs::exists(folder / "other.mlmodelc/letters"));
  EXPECT_THROW(compile_model(compiled.string(), (folder / "again.mlmodelc").string()), Exception);
  EXPECT_FALSE(fs::exists(folder / "again.mlmodelc"));
}

}  // namespace
}  // namespace moka
