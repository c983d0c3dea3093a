// SPDX-License-Identifier: Apache-2.0
#include "demo/notes.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace demo {
namespace {

constexpr size_t kPitches = 88;

Matrix zeros(size_t rows) { return {rows, kPitches, std::vector<float>(rows * kPitches)}; }

void hold(Matrix& m, int pitch, size_t from, size_t to, float value) {
  for (size_t row = from; row < to; ++row)
    m.values[row * m.columns + static_cast<size_t>(pitch) - kLowestPitch] = value;
}

NoteOptions plain() {
  NoteOptions options;
  options.infer_onsets = false;
  options.leftovers = false;
  return options;
}

TEST(Windows, LeadInAndOverlap) {
  std::vector<float> sound(kWindow);
  for (size_t i = 0; i < sound.size(); ++i) sound[i] = static_cast<float>(i + 1);
  const auto w = windows(sound);
  ASSERT_EQ(w.size(), 2u);
  const size_t lead = 15 * 256;
  for (const auto& window : w) EXPECT_EQ(window.size(), 43844u);
  EXPECT_EQ(w[0][lead - 1], 0);
  EXPECT_EQ(w[0][lead], 1);
  EXPECT_EQ(w[0].back(), static_cast<float>(kWindow - lead));
  EXPECT_EQ(w[1][0], static_cast<float>(43844 - 30 * 256 - lead + 1));
  EXPECT_EQ(w[1].back(), 0);
}

TEST(Windows, NoSoundGivesOneSilentWindow) {
  const auto w = windows({});
  ASSERT_EQ(w.size(), 1u);
  EXPECT_EQ(w[0], std::vector<float>(kWindow));
}

TEST(Unwrap, FramesComeFromWhereTheSoundIs) {
  // A fake model that returns the sound at the middle of each frame.
  std::vector<float> sound(5 * 22050 + 77);
  for (size_t i = 0; i < sound.size(); ++i) sound[i] = static_cast<float>(i);
  std::vector<std::vector<float>> outputs;
  for (const auto& window : windows(sound)) {
    std::vector<float> output;
    for (size_t frame = 0; frame < kWindowFrames; ++frame) {
      const size_t at = frame * kHop;
      const float here = at < window.size() ? window[at] : 0;
      output.insert(output.end(), {here, -here});
    }
    outputs.push_back(output);
  }
  const Matrix joined = unwrap(outputs, 2, sound.size());
  EXPECT_EQ(joined.rows, sound.size() * 142 / 36164);
  for (size_t row = 0; row < joined.rows; ++row) {
    EXPECT_NEAR(joined.at(row, 0), frame_time(row) * kSampleRate, 0.01) << row;
    EXPECT_EQ(joined.at(row, 1), -joined.at(row, 0));
  }
}

TEST(Unwrap, RowsOfARecordedRun) {
  // 200607 samples gave 787 frames in the package's own recorded outputs.
  const std::vector<std::vector<float>> outputs(6, std::vector<float>(kWindowFrames));
  EXPECT_EQ(unwrap(outputs, 1, 200607).rows, 787u);
}

TEST(Unwrap, WrongSizesAreErrors) {
  EXPECT_THROW(unwrap({std::vector<float>(100)}, 88, 43844), std::runtime_error);
  EXPECT_EQ(unwrap({}, 88, 43844).rows, 0u);
}

TEST(Notes, AnOnsetIsFollowedWhileTheNoteLasts) {
  Matrix frames = zeros(200), onsets = zeros(200);
  hold(frames, 60, 20, 60, 0.8f);
  hold(frames, 60, 35, 40, 0.1f);  // a dip shorter than the tolerance
  hold(onsets, 60, 20, 21, 0.9f);
  const auto notes = find_frame_notes(frames, onsets, plain());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].start, 20u);
  EXPECT_EQ(notes[0].end, 60u);
  EXPECT_EQ(notes[0].pitch, 60);
  EXPECT_NEAR(notes[0].strength, (35 * 0.8 + 5 * 0.1) / 40, 1e-6);
}

TEST(Notes, ALongDipEndsTheNote) {
  Matrix frames = zeros(200), onsets = zeros(200);
  hold(frames, 60, 20, 50, 0.8f);
  hold(frames, 60, 61, 90, 0.8f);
  hold(onsets, 60, 20, 21, 0.9f);
  const auto notes = find_frame_notes(frames, onsets, plain());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].end, 50u);
}

TEST(Notes, ALaterOnsetEndsTheNoteBefore) {
  Matrix frames = zeros(200), onsets = zeros(200);
  hold(frames, 60, 20, 80, 0.8f);
  hold(onsets, 60, 20, 21, 0.9f);
  hold(onsets, 60, 50, 51, 0.7f);
  const auto notes = find_frame_notes(frames, onsets, plain());
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].start, 50u);
  EXPECT_EQ(notes[0].end, 80u);
  EXPECT_EQ(notes[1].start, 20u);
  EXPECT_EQ(notes[1].end, 50u);
}

TEST(Notes, WeakOnsetsAndShortNotesAreNone) {
  Matrix frames = zeros(200), onsets = zeros(200);
  hold(frames, 60, 20, 60, 0.8f);
  hold(onsets, 60, 20, 21, 0.49f);
  hold(frames, 70, 20, 31, 0.8f);  // eleven frames, which isn't longer than eleven
  hold(onsets, 70, 20, 21, 0.9f);
  EXPECT_TRUE(find_frame_notes(frames, onsets, plain()).empty());
  hold(frames, 70, 20, 32, 0.8f);
  EXPECT_EQ(find_frame_notes(frames, onsets, plain()).size(), 1u);
}

TEST(Notes, NeighborsAreUsedUp) {
  Matrix frames = zeros(200), onsets = zeros(200);
  for (int pitch : {60, 61}) {
    hold(frames, pitch, 20, 60, 0.8f);
    hold(onsets, pitch, 20, 21, 0.9f);
  }
  const auto notes = find_frame_notes(frames, onsets, plain());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].pitch, 61);
}

TEST(Notes, LeftoversBecomeNotesWithoutOnsets) {
  Matrix frames = zeros(200), onsets = zeros(200);
  hold(frames, 21, 30, 70, 0.5f);
  hold(frames, 108, 100, 150, 0.6f);
  NoteOptions options = plain();
  options.leftovers = true;
  const auto notes = find_frame_notes(frames, onsets, options);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].pitch, 108);  // the strongest first
  EXPECT_EQ(notes[1].pitch, 21);
  EXPECT_NEAR(static_cast<double>(notes[1].start), 30, 1);
  EXPECT_NEAR(static_cast<double>(notes[1].end), 70, 1);
}

TEST(Notes, ASuddenRiseIsAnOnset) {
  Matrix frames = zeros(200), onsets = zeros(200);
  hold(frames, 60, 20, 60, 0.8f);
  hold(onsets, 90, 150, 151, 0.9f);  // sets the scale of inferred onsets; no frames there
  NoteOptions options = plain();
  EXPECT_TRUE(find_frame_notes(frames, onsets, options).empty());
  options.infer_onsets = true;
  const auto notes = find_notes(frames, onsets, options);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].pitch, 60);
  // The rise holds over two steps on frames 20 and 21, so no single peak but a plateau starts here.
  EXPECT_NEAR(notes[0].start_s, 20 * 256 / 22050.0, 2 * 256 / 22050.0);
}

TEST(Notes, EmptyAndMismatchedInputs) {
  EXPECT_TRUE(find_notes(zeros(0), zeros(0)).empty());
  EXPECT_TRUE(find_notes(zeros(1), zeros(1)).empty());
  EXPECT_TRUE(find_notes(zeros(300), zeros(300)).empty());
  EXPECT_THROW(find_notes(zeros(3), zeros(4)), std::runtime_error);
  Matrix all = zeros(50);
  for (float& v : all.values) v = 1;
  EXPECT_NO_THROW(find_notes(all, all));
}

}  // namespace
}  // namespace demo
