// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "demo/notes.h"
#include "demo/score.h"
#include "demo/tiny_model.h"
#include "demo/transcribe.h"

namespace demo {
namespace {

std::filesystem::path basic_pitch() {
  const char* folder = std::getenv("MOKA_TEST_MODELS");
  return std::filesystem::path(folder != nullptr ? folder : MOKA_TEST_MODELS) / "basic_pitch" / "nmp.mlpackage";
}

TEST(Transcription, BasicPitchHearsTheMelody) {
  if (!std::filesystem::exists(basic_pitch())) GTEST_SKIP() << "no model at " << basic_pitch();
  moka::Model model = moka::Model::load(basic_pitch());
  auto played = melody();
  ASSERT_GE(played.size(), 20u);
  Score s = score(played, transcribe(model, synthesize(played, kSampleRate)));
  EXPECT_GE(s.f_measure, 0.8);
}

TEST(Transcription, TheOwnModelHearsTheMelodyToo) {
  auto played = melody();
  Score s = score(played, transcribe(tiny_model().build(), synthesize(played, kSampleRate)));
  EXPECT_GE(s.f_measure, 0.8);
}

}  // namespace
}  // namespace demo
