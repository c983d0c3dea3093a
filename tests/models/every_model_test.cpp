// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "models/model_util.h"
#include "models_folder.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Models that need parts of Apple's systems. Each error names the part.
const std::map<std::string, std::string> kRefused = {
    {"NSFW.mlmodel", "visionFeaturePrint"},
    {"sample.mlmodel", "textClassifier"},
    {"sample.mlpackage", "textClassifier"},
    {"NeuralMcNeuralNet.mlmodel", "custom layer 'Swish'"},
};

bool refused(const fs::path& p) { return kRefused.contains(p.filename().string()); }

class EveryModel : public testing::TestWithParam<fs::path> {};

TEST_P(EveryModel, PredictsOrNamesWhatIsMissing) {
  if (refused(GetParam())) {
    const std::string& thing = kRefused.at(GetParam().filename().string());
    try {
      Model::load(GetParam().string());
      FAIL() << "expected an error that names " << thing;
    } catch (const Exception& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
      EXPECT_NE(std::string(e.what()).find(thing), std::string::npos) << e.what();
    }
    return;
  }
  Model m = Model::load(GetParam().string());
  Features out = m.predict(sample_inputs(m, 1));
  EXPECT_EQ(out.size(), m.function().outputs.size());
  for (const auto& f : m.function().outputs) {
    const FeatureValue& v = out.at(f.name);
    ASSERT_FALSE(std::holds_alternative<std::monostate>(v)) << f.name;
    if (const auto* a = std::get_if<MultiArray>(&v)) {
      EXPECT_EQ(a->type(), f.array.type) << f.name;
      ASSERT_GT(a->count(), 0) << f.name;
      for (int64_t i = 0; i < a->count(); i++) ASSERT_TRUE(std::isfinite(a->at(i))) << f.name << "[" << i << "]";
    }
  }
}

struct Column {
  const char* name;
  void (*set)(ModelConfiguration&);
};
constexpr Column kColumns[] = {
    {"reference", [](ModelConfiguration& c) { c.device = "reference"; }},
    {"not optimised", [](ModelConfiguration& c) { c.optimize = false; }},
    {"no memory shared", [](ModelConfiguration& c) { c.reuse_buffers = false; }},
    {"one thread", [](ModelConfiguration& c) { c.threads = 1; }},
    {"two threads", [](ModelConfiguration& c) { c.threads = 2; }},
};

/// Every way to run a model gives the same result. 1e-5 of the output's scale is the difference of sums of a few
/// thousand float32 products in another order. Deep networks may add a rounding, 2^-23, per operation. Float16 programs
/// compute in float32 in every column, so the same bound holds.
TEST_P(EveryModel, ColumnsAgree) {
  if (refused(GetParam())) GTEST_SKIP() << "refused when loading";
  Model m = Model::load(GetParam().string());
  Features in = sample_inputs(m, 2), expected = m.predict(in);
  ModelConfiguration unoptimised;
  unoptimised.optimize = false;
  double operations = 0;  // operations of the column with the most
  for (const auto& op : Model::load(GetParam().string(), unoptimised).operations().operations)
    operations += op.type != "const";
  const double bound = std::max(1e-5, operations * std::ldexp(1, -23));
  for (const Column& column : kColumns) {
    if (kSanitized && std::string(column.name) == "reference") continue;  // plain loops take minutes there
    ModelConfiguration c;
    column.set(c);
    double d = difference(Model::load(GetParam().string(), c).predict(in), expected);
    EXPECT_LE(d, bound) << column.name;
    if (d > 0) std::cout << "  " << column.name << ": " << d << "\n";
  }
}

std::map<std::string, std::vector<std::byte>> weights_of(const fs::path& model) {
  std::map<std::string, std::vector<std::byte>> out;
  if (!fs::is_directory(model)) return out;
  for (const auto& e : fs::recursive_directory_iterator(model)) {
    if (e.path().filename() != "weight.bin") continue;
    std::ifstream in(e.path(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    for (const char* name : {"weights/weight.bin", "@model_path/weights/weight.bin"})
      out[name].assign(data, data + bytes.size());
  }
  return out;
}

/// The text form of a program gives the same results as the model it was printed from.
TEST_P(EveryModel, TextRoundTrip) {
  if (refused(GetParam())) GTEST_SKIP() << "refused when loading";
  Model m = Model::load(GetParam().string());
  if (m.description().type != "mlProgram")
    GTEST_SKIP() << m.description().type << ": its features are not those of a program";
  Model again = Model::from_mil(m.mil(), {}, weights_of(GetParam()));
  EXPECT_EQ(again.mil(), m.mil());
  Features in = sample_inputs(m, 3), expected = m.predict(in), typed, got;
  for (const auto& f : again.function().inputs) typed[f.name] = in.array(f.name);
  got = again.predict(typed);
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, value] : expected) {
    const MultiArray& a = got.array(name);
    EXPECT_EQ(difference(FeatureValue(a.converted(std::get<MultiArray>(value).type())), value), 0) << name;
  }
}

/// With `exact`, every float16 value is rounded when it is computed. 2^-11 is one rounding. The models round a few
/// hundred values one after another, and the roundings of a sum partly cancel.
TEST_P(EveryModel, ExactPrecisionIsNear) {
  if (refused(GetParam())) GTEST_SKIP() << "refused when loading";
  Model m = Model::load(GetParam().string());
  ModelConfiguration c;
  c.precision = Precision::exact;
  Model exact = Model::load(GetParam().string(), c);
  Features in = sample_inputs(m, 4), a = exact.predict(in), b = m.predict(in);
  bool half = m.mil().find("fp16") != std::string::npos;
  double d = difference(a, b);
  if (d > 0) std::cout << "  " << d << "\n";
  EXPECT_LE(d, half ? 16 * std::ldexp(1, -11) : 1e-5);
  if (kSanitized) return;
  c.device = "reference";
  EXPECT_LE(difference(Model::load(GetParam().string(), c).predict(in), a), half ? 16 * std::ldexp(1, -11) : 1e-5);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryModel);
INSTANTIATE_TEST_SUITE_P(Shared, EveryModel, testing::ValuesIn(published_models()), [](const auto& info) {
  std::string n = info.param.filename().string();
  for (char& c : n)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return n;
});

/// One model as a package and compiled by Apple's compiler.
TEST(ModelPairs, AreIdentical) {
  MOKA_NEEDS_MODELS(folder);
  for (const char* name : {"silero-vad-unified-v6.0.0", "unified_int8", "unified_palette_4bit"}) {
    Model package = Model::load((*folder / "silero_vad" / (std::string(name) + ".mlpackage")).string());
    Model compiled = Model::load((*folder / "silero_vad" / (std::string(name) + ".mlmodelc")).string());
    for (uint64_t seed = 1; seed < 4; seed++) {
      Features in = random_inputs(package.function(), seed);
      EXPECT_TRUE(identical(package.predict(in), compiled.predict(in))) << name;
    }
  }
}

/// One neural network as a specification and compiled by Apple's compiler.
TEST(ModelPairs, NeuralNetworksAgree) {
  MOKA_NEEDS_MODELS(folder);
  struct Pair {
    const char* path;
    double bound;
  };
  // The compiler folds the batch norms of SSDOcr into its convolutions and rounds the products to float16: 60 layers
  // with a relative error of 2^-11 each.
  for (const Pair& pair :
       {Pair{"image_quality/ImageQualityCP20", 1e-6}, Pair{"card_detector/SSDOcr", 60 * std::ldexp(1, -11)}}) {
    Model source = Model::load((*folder / (std::string(pair.path) + ".mlmodel")).string());
    Model compiled = Model::load((*folder / (std::string(pair.path) + ".mlmodelc")).string());
    Features in = sample_inputs(source, 5);
    const double d = difference(compiled.predict(in), source.predict(in));
    std::cout << "  " << pair.path << ": " << d << "\n";
    EXPECT_LE(d, pair.bound) << pair.path;
  }
}

}  // namespace
}  // namespace moka::test
