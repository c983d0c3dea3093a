// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/api_util.h"

/// Detectors that end in a non-maximum suppression. tests/golden/detector_models.py lists where the thresholds are
/// described.
namespace moka::test {
namespace {

using Json = nlohmann::json;

class Detectors : public testing::TestWithParam<const char*> {
 protected:
  Model load(const ModelConfiguration& c = {}) const {
    return Model::load(std::string(MOKA_GOLDEN "/detectors/") + GetParam(), c);
  }
  static const FeatureDescription* input(const Model& m, std::string_view name) {
    for (const auto& f : m.function().inputs)
      if (f.name == name) return &f;
    return nullptr;
  }
  static Json truth() {
    std::ifstream file(MOKA_GOLDEN "/detectors/truth.json");
    return Json::parse(file);
  }
};

Image picture(const Json& pixels) {
  Image image(4, 4, PixelFormat::rgb8);
  for (int64_t p = 0; p < 16; ++p)
    for (int64_t c = 0; c < 3; ++c)
      image.pixels.get()[p / 4 * image.row_bytes + p % 4 * 3 + c] = static_cast<uint8_t>(pixels[c * 16 + p].get<int>());
  return image;
}

void expect_near(const MultiArray& a, const Json& expected, int64_t columns, const std::string& what) {
  ASSERT_EQ(a.shape(), (std::vector<int64_t>{static_cast<int64_t>(expected.size()) / columns, columns})) << what;
  for (int64_t i = 0; i < a.count(); ++i) EXPECT_NEAR(a.at(i), expected[i].get<double>(), 1e-5) << what << " " << i;
}

TEST_P(Detectors, FindWhatNumpyFinds) {
  const bool computed = std::string(GetParam()).starts_with("computed");
  for (const char* device : {"cpu", "reference"}) {
    ModelConfiguration c;
    c.device = device;
    const Model model = load(c);
    int cases = 0;
    for (const Json& t : truth()) {
      Features in{{"image", picture(t["pixels"])}};
      if (t.contains("computed") != computed) continue;
      bool described = true;
      for (const char* name : {"iouThreshold", "confidenceThreshold"}) {
        if (!t.contains(name) || t[name].is_null()) continue;
        const FeatureDescription* f = input(model, name);
        described = described && f != nullptr;
        if (f == nullptr) continue;
        if (f->type == FeatureType::float64)
          in[name] = t[name].get<double>();
        else
          in[name] = MultiArray::of(std::vector<float>{t[name].get<float>()}, {1});
      }
      if (!described) continue;
      ++cases;
      const Features out = model.predict(in);
      expect_near(out.array("confidence"), t["confidence"], 3, "confidence");
      expect_near(out.array("coordinates"), t["coordinates"], 4, "coordinates");
    }
    EXPECT_GE(cases, 2);
  }
}

TEST_P(Detectors, ThresholdsAreOptionalAndHaveTheModelsDefaults) {
  const Model model = load();
  const std::pair<const char*, double> defaults[] = {{"iouThreshold", 0.45}, {"confidenceThreshold", 0.25}};
  for (const auto& [name, value] : defaults) {
    const FeatureDescription* f = input(model, name);
    if (f == nullptr) continue;
    EXPECT_TRUE(f->optional) << name;
    EXPECT_EQ(f->default_value, value) << name;
  }
  ASSERT_NE(input(model, "image"), nullptr);
  EXPECT_FALSE(input(model, "image")->optional);
  EXPECT_EQ(model.description().class_labels, (std::vector<std::string>{"cat", "dog", "owl"}));
  expect_error(ErrorKind::invalid_argument, {"image", "got nothing"}, [&] { model.predict({}); });
}

INSTANTIATE_TEST_SUITE_P(All, Detectors,
                         testing::Values("program.mlpackage", "pipeline.mlmodel", "both.mlmodel", "stage.mlmodel",
                                         "nobody.mlmodel", "arrays.mlmodel", "computed.mlmodel", "nested.mlmodel",
                                         "compiled.mlmodelc"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace moka::test
