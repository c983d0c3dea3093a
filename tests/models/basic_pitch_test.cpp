// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "demo/notes.h"
#include "models/model_util.h"
#include "models_folder.h"
#include "moka/files.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutputs[] = {"Identity", "Identity_1", "Identity_2"};
constexpr const char* kNames[] = {"contour", "note", "onset"};

class BasicPitch : public testing::Test {
 protected:
  void SetUp() override {
    MOKA_NEEDS_MODELS(folder);
    folder_ = *folder / "basic_pitch";
    model_.emplace(Model::load((folder_ / "nmp.mlpackage").string()));
  }
  Features predict(std::span<const float> window) {
    return model_->predict({{"input_2", MultiArray::of(window, {1, 43844, 1})}});
  }

  fs::path folder_;
  std::optional<Model> model_;
};

/// tests/golden/basic_pitch_truth.py describes the windows and the recorded part of the outputs.
TEST_F(BasicPitch, MatchesOnnxRuntime) {
  const Sound audio = read_sound(folder_ / "vocadito_10.wav");
  ASSERT_EQ(audio.sample_rate, 44100u);
  ASSERT_EQ(audio.channels, 1u);
  std::vector<float> half(audio.samples.size() / 2);
  for (size_t i = 0; i < half.size(); i++) half[i] = (audio.samples[2 * i] + audio.samples[2 * i + 1]) / 2;
  const std::pair<const char*, std::vector<float>> windows[] = {
      {"recording_1", {half.begin() + demo::kWindow, half.begin() + 2 * demo::kWindow}},
      {"recording_3", {half.begin() + 3 * demo::kWindow, half.begin() + 4 * demo::kWindow}},
      {"noise", draw(7, demo::kWindow, -0.5, 0.5)}};
  for (const auto& [name, samples] : windows) {
    const FeatureValue golden = read_npy(fs::path(MOKA_GOLDEN) / "basic_pitch" / (std::string(name) + ".npy"));
    auto truth = std::get<MultiArray>(golden).as<float>();
    Features out = predict(samples);
    size_t at = 0;
    double worst = 0;
    for (const char* output : kOutputs) {
      auto values = out.array(output).as<float>();
      for (size_t i = 0; i < values.size(); i += 7)
        worst = std::max(worst, static_cast<double>(std::abs(values[i] - truth[at++])));
    }
    EXPECT_EQ(at, truth.size());
    std::cout << "  " << name << ": largest difference " << worst << "\n";
    EXPECT_LE(worst, 1e-4) << name;
  }
}

/// The whole recording, resampled, against the outputs recorded upstream.
TEST_F(BasicPitch, MatchesUpstreamsRecording) {
  const Sound audio = read_sound(folder_ / "vocadito_10.wav");
  std::vector<float> sound = resampled(audio, demo::kSampleRate).samples;
  std::vector<std::vector<float>> outputs[3];
  for (const auto& window : demo::windows(sound)) {
    Features out = predict(window);
    for (int k = 0; k < 3; k++) {
      auto v = out.array(kOutputs[k]).as<float>();
      outputs[k].emplace_back(v.begin(), v.end());
    }
  }
  for (int k = 0; k < 3; k++) {
    const auto expected =
        std::get<MultiArray>(read_npy(folder_ / "expected_plain" / ("vocadito_10_" + std::string(kNames[k]) + ".npy")));
    demo::Matrix got = demo::unwrap(outputs[k], static_cast<size_t>(expected.shape()[1]), sound.size());
    ASSERT_EQ(got.rows, static_cast<size_t>(expected.shape()[0])) << kNames[k];
    double worst = 0;
    for (size_t i = 0; i < got.values.size(); i++)
      worst = std::max(worst, std::abs(expected.at(static_cast<int64_t>(i)) - static_cast<double>(got.values[i])));
    std::cout << "  " << kNames[k] << ": largest difference " << worst << "\n";
    EXPECT_LE(worst, 1e-4) << kNames[k];
  }
}

}  // namespace
}  // namespace moka::test
