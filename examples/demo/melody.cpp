// SPDX-License-Identifier: Apache-2.0
#include "demo/melody.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace demo {
namespace {

constexpr double kBeat = 0.4;      // seconds
constexpr double kLead = 0.25;     // silence before the first note
constexpr double kRelease = 0.06;  // time in which a damped string falls silent
constexpr double kAttack = 0.002;
constexpr double kStiffness = 1e-4;  // inharmonicity: partial k at k f sqrt(1 + B k^2)
constexpr double kPluck = 0.23;      // where the string is plucked, as a fraction of its length
constexpr int kMostPartials = 24;

struct Step {
  int pitch;
  double beats;
};

struct Chord {
  double beat, beats;
  std::vector<int> pitches;
};

void add_string(const Note& note, uint32_t rate, std::vector<double>& sound) {
  const double frequency = 440.0 * std::exp2((note.pitch - 69) / 12.0);
  const auto first = static_cast<size_t>(note.start_s * rate);
  const auto length = static_cast<size_t>((note.duration_s + kRelease) * rate);
  // Low strings ring longer than high ones.
  const double ring = 1.6 * std::pow(220.0 / frequency, 0.35);
  for (int k = 1; k <= kMostPartials; ++k) {
    const double partial = k * frequency * std::sqrt(1 + kStiffness * k * k);
    if (partial > 0.45 * rate) break;
    const double strength = note.velocity * std::sin(std::numbers::pi * k * kPluck) / (k * std::sqrt(k));
    const double decay = (1 + 0.25 * (k - 1)) / ring;
    const double turn = 2 * std::numbers::pi * partial / rate;
    for (size_t i = 0; i < length && first + i < sound.size(); ++i) {
      const double t = static_cast<double>(i) / rate;
      double envelope = std::exp(-decay * t) * std::min(1.0, t / kAttack);
      if (t > note.duration_s) envelope *= 0.5 + 0.5 * std::cos(std::numbers::pi * (t - note.duration_s) / kRelease);
      sound[first + i] += strength * envelope * std::sin(turn * static_cast<double>(i));
    }
  }
}

}  // namespace

std::string pitch_name(int pitch) {
  constexpr const char* kNames[] = {"C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"};
  const int semitone = ((pitch % 12) + 12) % 12;
  return kNames[semitone] + std::to_string((pitch - semitone) / 12 - 1);
}

std::vector<Note> melody() {
  // E4 = 64, F4 = 65, G4 = 67, D4 = 62, C4 = 60.
  const std::vector<Step> tune = {{64, 1}, {64, 1}, {65, 1}, {67, 1},   {67, 1},   {65, 1},   {64, 1}, {62, 1},
                                  {60, 1}, {60, 1}, {62, 1}, {64, 1},   {64, 1.5}, {62, 0.5}, {62, 2}, {64, 1},
                                  {64, 1}, {65, 1}, {67, 1}, {67, 1},   {65, 1},   {64, 1},   {62, 1}, {60, 1},
                                  {60, 1}, {62, 1}, {64, 1}, {62, 1.5}, {60, 0.5}, {60, 2}};
  const std::vector<Chord> chords = {{0, 1, {48, 55}},  {2, 1, {48, 55}},  {4, 1, {47, 55}},  {6, 1, {43, 53}},
                                     {8, 1, {45, 52}},  {10, 1, {45, 52}}, {12, 1, {43, 53}}, {14, 2, {43, 59}},
                                     {16, 1, {48, 55}}, {18, 1, {48, 55}}, {20, 1, {47, 55}}, {22, 1, {43, 53}},
                                     {24, 1, {45, 52}}, {26, 1, {45, 52}}, {28, 1, {43, 53}}, {30, 2, {48, 52, 55}}};
  std::vector<Note> notes;
  double beat = 0;
  for (const Step& step : tune) {
    notes.push_back({kLead + beat * kBeat, step.beats * kBeat * 0.92, step.pitch, 0.8});
    beat += step.beats;
  }
  for (const Chord& chord : chords) {
    for (int pitch : chord.pitches) {
      notes.push_back({kLead + chord.beat * kBeat, chord.beats * kBeat * 0.7, pitch, 0.55});
    }
  }
  std::stable_sort(notes.begin(), notes.end(), [](const Note& a, const Note& b) {
    return a.start_s != b.start_s ? a.start_s < b.start_s : a.pitch < b.pitch;
  });
  return notes;
}

std::vector<float> synthesize(const std::vector<Note>& notes, uint32_t sample_rate) {
  double end = 0;
  for (const Note& note : notes) end = std::max(end, note.start_s + note.duration_s + kRelease);
  std::vector<double> sound(static_cast<size_t>((end + 0.25) * sample_rate), 0.0);
  for (const Note& note : notes) add_string(note, sample_rate, sound);
  double loudest = 0;
  for (double s : sound) loudest = std::max(loudest, std::abs(s));
  std::vector<float> result(sound.size());
  for (size_t i = 0; i < sound.size(); ++i) result[i] = loudest > 0 ? static_cast<float>(sound[i] * 0.9 / loudest) : 0;
  return result;
}

}  // namespace demo
