// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "models_folder.h"
#include "moka/error.h"
#include "moka/model.h"
#include "moka/onnx_export.h"
#include "moka/onnx_import.h"
#include "moka/program.h"
#include "onnx_export/round_trip_util.h"
#include "temporary_folder.h"

/// What becomes ONNX comes back as an ML program that gives the same answers.
namespace moka::test {
namespace {

namespace fs = std::filesystem;

/// An image as the tensor that the graph has in its place: [1, channels, height, width].
FeatureValue in_graph(const FeatureValue& value, const FeatureDescription& described) {
  const auto* image = std::get_if<Image>(&value);
  if (image == nullptr) return value;
  if (image->format == PixelFormat::gray_float16)
    return in_graph(converted(*image, PixelFormat::gray_float32), described);
  const bool is_float = image->format == PixelFormat::gray_float32,
             gray = is_float || image->format == PixelFormat::gray8;
  const int64_t channels = gray ? 1 : 3, stride = static_cast<int64_t>(bytes_per_pixel(image->format));
  const bool bgr = (image->format == PixelFormat::bgra8) != (described.image.color == ColorSpace::bgr);
  MultiArray out(DataType::float32, {1, channels, image->height, image->width});
  size_t at = 0;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t y = 0; y < image->height; ++y)
      for (int64_t x = 0; x < image->width; ++x) {
        const uint8_t* pixel = image->pixels.get() + y * image->row_bytes + stride * x;
        float number = pixel[bgr && !gray ? 2 - c : c];
        if (is_float) std::memcpy(&number, pixel, sizeof number);
        out.as<float>()[at++] = number;
      }
  return out;
}

/// Numbers as an input that is a truth value in the graph takes them: 0 or 1.
FeatureValue truths(const FeatureValue& value) {
  const MultiArray& array = std::get<MultiArray>(value);
  MultiArray out(DataType::int32, array.shape());
  for (int64_t i = 0; i < array.count(); ++i) out.as<int32_t>()[static_cast<size_t>(i)] = array.at(i) != 0;
  return out;
}

/// Numbers as 8 bits of a pixel hold them.
MultiArray in_bytes(const MultiArray& array) {
  MultiArray out(DataType::float32, array.shape());
  for (int64_t i = 0; i < array.count(); ++i)
    out.as<float>()[static_cast<size_t>(i)] = static_cast<float>(std::clamp(std::nearbyint(array.at(i)), 0.0, 255.0));
  return out;
}

std::string differing_output(const FeatureValue& got, const FeatureValue& expected, const FeatureDescription& f,
                             bool is_half) {
  constexpr double relative = 1e-4, step_of_half = 0x1p-10;
  const auto* image = std::get_if<Image>(&expected);
  if (image == nullptr || image->format == PixelFormat::gray_float32 || image->format == PixelFormat::gray_float16)
    return difference(got, in_graph(expected, f), is_half || image != nullptr ? step_of_half : relative);
  return difference(in_bytes(std::get<MultiArray>(got)), in_graph(expected, f), 0);
}

class OnnxRoundTrip : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// The first difference of the answers to inputs that the description allows.
  std::string differing(const std::string& file, int inputs) {
    const Model before = Model::load(file);
    export_onnx(file, path("m.onnx"));
    const OnnxImport back = import_onnx(path("m.onnx"));
    const Model after = back.source.load();
    bool is_half = false;
    for (const auto* list : {&before.function().outputs, &before.function().states})
      for (const FeatureDescription& f : *list) is_half |= f.array.type == DataType::float16;
    for (int seed = 1; seed <= inputs; ++seed) {
      const Features drawn = before.random_inputs(static_cast<uint64_t>(seed));
      // Optional inputs came back as their defaults.
      Features given, same;
      for (const OnnxFeature& to : back.inputs)
        if (const FeatureValue* v = drawn.find(to.name)) {
          given[to.name] = *v;
          for (const FeatureDescription& f : before.function().inputs)
            if (f.name == to.name) same[to.feature] = to.type == "bool" ? truths(*v) : in_graph(*v, f);
        }
      PredictionOptions options;
      std::optional<State> state;
      if (!before.function().states.empty()) options.state = &state.emplace(before.new_state());
      for (const FeatureDescription& f : after.function().inputs)
        if (same.find(f.name) == nullptr) same[f.name] = MultiArray(f.array.type, f.array.shape);  // a state
      const Features expected = before.predict(given, options), got = after.predict(same);
      for (const FeatureDescription& f : before.function().outputs)
        for (const OnnxFeature& output : back.outputs)
          if (output.name == f.name)
            if (const std::string d = differing_output(got.at(output.feature), expected.at(f.name), f, is_half);
                !d.empty())
              return f.name + ": " + d;
    }
    return "";
  }

  static std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> out;
    for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
      const std::string kind = it->path().extension();
      if (kind != ".mlmodel" && kind != ".mlpackage" && kind != ".mlmodelc") continue;
      if (it->is_directory()) it.disable_recursion_pending();
      out.push_back(it->path());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  /// All models give the same answers but for those that are refused for this reason.
  void expect_same(const std::vector<fs::path>& files, const std::map<std::string, std::string>& refusals,
                   int inputs = 3) {
    EXPECT_FALSE(files.empty());
    for (const fs::path& file : files) {
      const auto refused = refusals.find(file.stem());
      try {
        EXPECT_EQ(differing(file, inputs), "") << file;
        EXPECT_EQ(refused, refusals.end()) << file << " has a round trip";
      } catch (const Exception& e) {
        EXPECT_TRUE(refused != refusals.end() && std::string(e.what()).find(refused->second) != std::string::npos)
            << file << ": " << e.what();
      }
    }
  }

  TemporaryFolder folder_;
};

/// What has no round trip, and a part of the error that says why.
using Refusals = std::map<std::string, std::string>;

const Refusals kClassic = {
    {"dict_vectorizer", "Core ML's programs take no dictionaries"},
    {"feature_vectorizer", "a dictionary with keys that are not known"},
    {"identity", "Core ML's programs take no strings"},
    {"imputer_dict", "ONNX has no such operation"},
    {"imputer_int", "does not fit into int32"},
    {"imputer_string", "Core ML's programs take no strings"},
    {"mapping_string", "Core ML's programs take no strings"},
    {"one_hot_string_dense", "Core ML's programs take no strings"},
    {"one_hot_string_sparse", "Core ML's programs take no strings"},
    {"probit", "ONNX has no such operation"},
    {"probit_pairs", "ONNX has no such operation"},
    {"recommender", "ONNX has no such operation"},
};
const Refusals kFiles = {
    {"contradictory", "with the default sizes of the inputs"},  // Core ML does not load it either
    {"too_deep", "nested more than 16 deep"},
    {"two", "weight file"},
};

TEST_F(OnnxRoundTrip, ClassicModels) { expect_same(files_in(MOKA_GOLDEN "/classic"), kClassic); }

TEST_F(OnnxRoundTrip, NetworksAndPipelines) {
  for (const char* folder : {"boundary", "cached", "detectors", "flexible", "pipelines"})
    expect_same(files_in(std::string(MOKA_GOLDEN "/") + folder), kFiles);
}

TEST_F(OnnxRoundTrip, PublishedModels) {
  MOKA_NEEDS_MODELS(models);
  const Refusals refusals = {
      {"NeuralMcNeuralNet", "no implementation of it is registered"},
      {"NSFW", "part of Apple's systems"},
      {"sample", "Natural Language"},
      {"SentimentPolarity", "Core ML's programs take no dictionaries"},
  };
  expect_same(files_in(*models), refusals, 1);
}

TEST_F(OnnxRoundTrip, ClassifiersComeBack) {
  for (const char* name :
       {"logistic_binary", "logistic_multi", "random_forest_multi", "svc_probability", "libsvm_3_classes"}) {
    const std::string file = MOKA_GOLDEN "/classic/" + std::string(name) + ".mlmodel";
    export_onnx(file, path("m.onnx"));
    const Model before = Model::load(file), after = import_onnx(path("m.onnx")).source.load();
    EXPECT_EQ(after.function().predicted_feature_name, before.function().predicted_feature_name) << name;
    EXPECT_EQ(after.function().predicted_probabilities_name, before.function().predicted_probabilities_name) << name;
    EXPECT_EQ(after.description().class_labels, before.description().class_labels) << name;
  }
}

TEST_F(OnnxRoundTrip, ArraysMayChangeAfterTheImport) {
  ProgramBuilder program;
  const auto x = program.input("x", DataType::float32, {2}), y = program.input("y", DataType::float32, {2});
  program.output(program.op("add", {{"x", x}, {"y", y}}), "sum");
  program.save(path("m.mlpackage"));
  export_onnx(path("m.mlpackage"), path("m.onnx"));
  OnnxImportOptions options;
  float fixed[] = {1, 2};
  options.constants["y"] = MultiArray(fixed, DataType::float32, {2});
  const OnnxImport made = import_onnx(path("m.onnx"), options);
  fixed[0] = fixed[1] = 100;
  const float given[] = {10, 20};
  const Features out = made.source.load().predict({{"x", MultiArray::of(given, {2})}});
  EXPECT_EQ(out.array("sum").at(0), 11);
  EXPECT_EQ(out.array("sum").at(1), 22);
}

/// A program that is loaded as it was imported, and one that was written and read, give the same bits.
TEST_F(OnnxRoundTrip, WhatIsLoadedEqualsWhatIsSaved) {
  for (const char* name : {"logistic_multi", "random_forest_multi", "svc_probability"}) {
    export_onnx(MOKA_GOLDEN "/classic/" + std::string(name) + ".mlmodel", path("m.onnx"));
    const OnnxImport made = import_onnx(path("m.onnx"));
    const Model loaded = made.source.load();
    made.source.save(path("m.mlpackage"));
    const Model saved = Model::load(path("m.mlpackage"));
    EXPECT_EQ(loaded.description().class_labels, saved.description().class_labels) << name;
    EXPECT_EQ(loaded.description().specification_version, saved.description().specification_version) << name;
    EXPECT_EQ(loaded.structure().functions.size(), saved.structure().functions.size()) << name;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Features inputs = saved.random_inputs(seed), expected = saved.predict(inputs);
      const Features got = loaded.predict(inputs), again = made.source.load().predict(inputs);
      for (const auto& [output, value] : expected) {
        EXPECT_EQ(describe(got.at(output)), describe(value)) << name;
        if (const auto* scores = std::get_if<Dictionary>(&value)) {
          EXPECT_EQ(std::get<Dictionary>(got.at(output)).strings, scores->strings) << name;
          EXPECT_EQ(std::get<Dictionary>(got.at(output)).ints, scores->ints) << name;
          EXPECT_EQ(std::get<Dictionary>(again.at(output)).strings, scores->strings) << name;
        } else if (const auto* label = std::get_if<std::string>(&value)) {
          EXPECT_EQ(std::get<std::string>(got.at(output)), *label) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace moka::test
