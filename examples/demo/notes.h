// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "demo/melody.h"

namespace demo {

// Parameters of Basic Pitch (Bittner et al., ICASSP 2022).
constexpr size_t kSampleRate = 22050;
constexpr size_t kWindow = 43844;      // samples per window
constexpr size_t kHop = 256;           // samples per frame of the outputs
constexpr size_t kWindowFrames = 172;  // frames per window
constexpr size_t kOverlapFrames = 30;  // overlap of windows in frames; half of it is cut off at each end
constexpr size_t kWindowHop = kWindow - kOverlapFrames * kHop;
constexpr size_t kLowestPitch = 21;  // MIDI pitch of the first of the 88 columns

/// The sound cut into overlapping windows of kWindow samples: half the overlap in zeros, then the sound, then zeros.
std::vector<std::vector<float>> windows(std::span<const float> samples);

/// Rows are frames.
struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<float> values;

  float at(size_t row, size_t column) const { return values[row * columns + column]; }
};

/// The model's outputs for all windows, each kWindowFrames x columns, joined into one matrix of
/// floor(samples * 142 / kWindowHop) rows, 142 being the frames kept of a window. Throws std::runtime_error for other
/// sizes.
Matrix unwrap(const std::vector<std::vector<float>>& outputs, size_t columns, size_t samples);

/// The position of a row of the joined matrix in the sound. Windows advance by slightly less than the frames that are
/// kept of them, so the time steps back a little at the start of each window.
double frame_time(size_t frame);

struct NoteOptions {
  double onset_threshold = 0.5;
  double frame_threshold = 0.3;
  size_t minimum_frames = 11;    // notes must be longer than this
  size_t energy_tolerance = 11;  // a note ends when this many frames in a row stay below the frame threshold
  bool infer_onsets = true;      // also take sudden rises of the frames as onsets
  bool leftovers = true;         // also turn strong frames without an onset into notes
};

struct FrameNote {
  size_t start = 0, end = 0;  // frames; `end` is not included
  int pitch = 0;
  double strength = 0;  // mean over the note's frames
};

/// Finds notes in the posteriorgrams of notes and onsets (equal sizes, 88 columns), by the method published with the
/// model. First the peaks of the onsets are taken, the last one first. Each is followed forward while the note lasts,
/// and its energy is removed. Then the strongest remaining frame is followed both ways ("melodia trick"), until none is
/// strong. Notes are in the order found. Throws std::runtime_error when the sizes disagree.
std::vector<FrameNote> find_frame_notes(const Matrix& frames, const Matrix& onsets, const NoteOptions& options = {});

/// The same in seconds, ordered by start and pitch.
std::vector<Note> find_notes(const Matrix& frames, const Matrix& onsets, const NoteOptions& options = {});

}  // namespace demo
