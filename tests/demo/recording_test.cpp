// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "demo/notes.h"
#include "models_folder.h"
#include "moka/files.h"

namespace demo {
namespace {

std::filesystem::path folder() { return moka::test::models_path() / "basic_pitch"; }

Matrix matrix(const std::filesystem::path& path) {
  const auto array = std::get<moka::MultiArray>(moka::read_npy(path));
  const auto values = array.as<float>();
  return {static_cast<size_t>(array.shape().at(0)),
          static_cast<size_t>(array.shape().at(1)),
          {values.begin(), values.end()}};
}

// The notes that the package's own decoder (basic-pitch 0.4.0) finds in its recorded outputs.
TEST(Recording, NotesOfTheRecordedOutputs) {
  const auto outputs = folder() / "expected_plain";
  if (!std::filesystem::exists(outputs)) GTEST_SKIP() << moka::test::kNoModels;
  const auto notes =
      find_frame_notes(matrix(outputs / "vocadito_10_note.npy"), matrix(outputs / "vocadito_10_onset.npy"));
  const std::vector<FrameNote> want = {
      {753, 768, 48, 0.5261}, {733, 753, 47, 0.4118}, {712, 733, 47, 0.5196}, {694, 712, 47, 0.5220},
      {632, 649, 48, 0.4890}, {615, 627, 52, 0.4884}, {593, 605, 56, 0.4549}, {580, 593, 55, 0.4205},
      {552, 578, 54, 0.7611}, {527, 552, 54, 0.7161}, {475, 489, 47, 0.4994}, {457, 475, 46, 0.4384},
      {421, 454, 46, 0.4718}, {379, 395, 47, 0.5976}, {365, 379, 47, 0.6661}, {334, 365, 47, 0.6980},
      {308, 322, 45, 0.5835}, {257, 272, 49, 0.5975}, {244, 256, 51, 0.4127}, {191, 210, 54, 0.6784},
      {172, 191, 54, 0.7091}, {155, 172, 54, 0.7276}, {131, 144, 51, 0.3722}, {92, 110, 46, 0.5053},
      {74, 92, 46, 0.4130},   {55, 74, 47, 0.6986},   {214, 233, 56, 0.6277}, {110, 124, 47, 0.4429}};
  ASSERT_EQ(notes.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(notes[i].start, want[i].start) << i;
    EXPECT_EQ(notes[i].end, want[i].end) << i;
    EXPECT_EQ(notes[i].pitch, want[i].pitch) << i;
    EXPECT_NEAR(notes[i].strength, want[i].strength, 5.1e-5) << i;
  }
}

TEST(Recording, SoundIsCutIntoSixWindows) {
  const auto path = folder() / "vocadito_10.wav";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << moka::test::kNoModels;
  const auto audio = moka::resampled(moka::mono(moka::read_sound(path)), kSampleRate);
  EXPECT_EQ(audio.samples.size(), 200607u);
  EXPECT_EQ(windows(audio.samples).size(), 6u);
}

}  // namespace
}  // namespace demo
