// SPDX-License-Identifier: Apache-2.0
#include "demo/score.h"

#include <gtest/gtest.h>

#include <cmath>

#include "demo/piano_roll.h"

namespace demo {
namespace {

TEST(Score, PitchAndStartMustAgree) {
  const std::vector<Note> played = {{1.0, 0.5, 60}, {1.0, 0.5, 64}, {2.0, 0.5, 60}, {3.0, 0.5, 62}};
  const std::vector<Note> found = {{1.05, 0.1, 60}, {1.051, 0.5, 64}, {1.96, 2.0, 60}, {3.0, 0.5, 63}, {3.0, 0.5, 50}};
  const Score s = score(played, found);
  EXPECT_EQ(s.matched, 2u);
  EXPECT_DOUBLE_EQ(s.precision, 2.0 / 5);
  EXPECT_DOUBLE_EQ(s.recall, 2.0 / 4);
  EXPECT_DOUBLE_EQ(s.f_measure, 2 * 0.4 * 0.5 / 0.9);
  EXPECT_EQ(s.pairs.size(), 7u);
}

TEST(Score, EachNoteMatchesOnce) {
  const std::vector<Note> played = {{1.00, 0.1, 60}, {1.04, 0.1, 60}};
  EXPECT_EQ(score(played, {{1.02, 0.1, 60}}).matched, 1u);
  // Nearest-first would pair 1.04 with 1.03 and leave 1.00 without a partner.
  EXPECT_EQ(score(played, {{1.03, 0.1, 60}, {1.08, 0.1, 60}}).matched, 2u);
}

TEST(Score, NothingPlayedOrFound) {
  EXPECT_EQ(score({}, {}).f_measure, 0);
  EXPECT_EQ(score({{1, 1, 60}}, {}).f_measure, 0);
  EXPECT_EQ(score({}, {{1, 1, 60}}).precision, 0);
}

TEST(Score, SideBySide) {
  const std::vector<Note> played = {{1.0, 0.5, 60}, {2.0, 0.5, 61}};
  const std::vector<Note> found = {{1.01, 0.4, 60}, {2.5, 0.25, 69}};
  EXPECT_EQ(side_by_side(played, found, score(played, found)),
            "played   at s  for s  found   at s  for s  off by ms\n"
            "──────  ─────  ─────  ─────  ─────  ─────  ─────────  ──────\n"
            "C4      1.000  0.500  C4     1.010  0.400      +10.0\n"
            "C#4     2.000  0.500                                  missed\n"
            "                      A4     2.500  0.250             extra\n"
            "\n"
            "2 played, 2 found, 1 matched: precision 0.500, recall 0.500, F-measure 0.500\n");
}

TEST(Melody, HasATuneAndChords) {
  const auto notes = melody();
  EXPECT_GE(notes.size(), 24u);
  size_t chords = 0;
  for (size_t i = 1; i < notes.size(); ++i) {
    EXPECT_LE(notes[i - 1].start_s, notes[i].start_s);
    chords += notes[i - 1].start_s == notes[i].start_s;
  }
  EXPECT_GE(chords, 12u);
  EXPECT_EQ(pitch_name(60), "C4");
  EXPECT_EQ(pitch_name(21), "A0");
  EXPECT_EQ(pitch_name(78), "F#5");
}

TEST(Melody, SoundIsNormalisedAndRepeatable) {
  const auto sound = synthesize(melody(), 22050);
  EXPECT_GT(sound.size(), 8u * 22050);
  EXPECT_LT(sound.size(), 15u * 22050);
  float loudest = 0;
  for (float s : sound) loudest = std::max(loudest, std::abs(s));
  EXPECT_NEAR(loudest, 0.9, 1e-5);
  EXPECT_EQ(sound, synthesize(melody(), 22050));
  EXPECT_EQ(sound.front(), 0);
  EXPECT_NEAR(sound.back(), 0, 1e-3);
  EXPECT_FALSE(synthesize({}, 22050).empty());
}

TEST(Melody, AStringSoundsAtItsPitch) {
  // The strongest of a comb of frequencies around A4 is A4 itself.
  const auto sound = synthesize({{0, 0.5, 69, 1}}, 22050);
  double best = 0, best_frequency = 0;
  for (double frequency = 400; frequency <= 480; frequency += 2) {
    double re = 0, im = 0;
    for (size_t i = 0; i < sound.size(); ++i) {
      const double turn = 2 * 3.14159265358979 * frequency * static_cast<double>(i) / 22050;
      re += sound[i] * std::cos(turn);
      im += sound[i] * std::sin(turn);
    }
    if (std::hypot(re, im) > best) {
      best = std::hypot(re, im);
      best_frequency = frequency;
    }
  }
  EXPECT_NEAR(best_frequency, 440, 2);
}

TEST(PianoRoll, DrawsAnyNotes) {
  const auto played = melody();
  const auto picture = piano_roll(played, {{0.25, 0.3, 48}, {5, 1, 90}, {-1, 0, 400}, {1e12, 1e12, -400}});
  EXPECT_EQ(picture.format, moka::PixelFormat::rgb8);
  EXPECT_GT(picture.width, 1000);
  EXPECT_LT(picture.width, 20000);
  EXPECT_LT(picture.height, 4000);
  EXPECT_GT(piano_roll({}, {}).height, 100);
}

}  // namespace
}  // namespace demo
