// SPDX-License-Identifier: Apache-2.0
#include "demo/notes.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace demo {
namespace {

/// Onsets, raised to the smaller rise of the frames over one and two steps. The rises are scaled to the onsets'
/// maximum.
std::vector<double> with_inferred_onsets(const Matrix& frames, const Matrix& onsets) {
  std::vector<double> result(onsets.values.begin(), onsets.values.end());
  std::vector<double> rise(result.size(), 0.0);
  const size_t n = frames.columns;
  for (size_t i = 2 * n; i < rise.size(); ++i) {
    const double now = frames.values[i];
    rise[i] = std::max(0.0, std::min(now - frames.values[i - n], now - frames.values[i - 2 * n]));
  }
  if (result.empty()) return result;
  const double steepest = *std::max_element(rise.begin(), rise.end());
  if (steepest <= 0) return result;
  const double highest = *std::max_element(result.begin(), result.end());
  for (size_t i = 0; i < rise.size(); ++i) result[i] = std::max(result[i], highest * rise[i] / steepest);
  return result;
}

class Finder {
 public:
  Finder(const Matrix& frames, const NoteOptions& options)
      : frames_(frames), options_(options), left_(frames.values), rows_(frames.rows), columns_(frames.columns) {}

  void from_onsets(const std::vector<double>& onsets) {
    for (size_t start = rows_ < 2 ? 0 : rows_ - 2; start >= 1; --start) {
      for (size_t column = columns_; column-- > 0;) {
        const double here = onsets[start * columns_ + column];
        if (here < options_.onset_threshold) continue;
        if (here > onsets[(start - 1) * columns_ + column] && here > onsets[(start + 1) * columns_ + column]) {
          follow_onset(start, column);
        }
      }
    }
  }

  void from_leftovers() {
    std::vector<size_t> strong;
    for (size_t i = 0; i < left_.size(); ++i) {
      if (left_[i] > options_.frame_threshold) strong.push_back(i);
    }
    const auto before = left_;
    std::stable_sort(strong.begin(), strong.end(), [&](size_t a, size_t b) { return before[a] > before[b]; });
    for (size_t i : strong) {
      if (left_[i] > options_.frame_threshold) follow_both_ways(i / columns_, i % columns_);
    }
  }

  std::vector<FrameNote> take() { return std::move(notes_); }

 private:
  bool weak(size_t row, size_t column) const { return left_[row * columns_ + column] < options_.frame_threshold; }

  /// Removes the energy of a pitch and of its neighbors.
  void use_up(size_t row, size_t column) {
    left_[row * columns_ + column] = 0;
    if (column + 1 < columns_) left_[row * columns_ + column + 1] = 0;
    if (column > 0) left_[row * columns_ + column - 1] = 0;
  }

  void keep(size_t start, size_t end, size_t column) {
    double sum = 0;
    for (size_t row = start; row < end; ++row) sum += frames_.at(row, column);
    notes_.push_back({start, end, static_cast<int>(column + kLowestPitch), sum / static_cast<double>(end - start)});
  }

  void follow_onset(size_t start, size_t column) {
    size_t row = start + 1, quiet = 0;
    for (; row + 1 < rows_ && quiet < options_.energy_tolerance; ++row) quiet = weak(row, column) ? quiet + 1 : 0;
    const size_t end = row - quiet;
    if (end - start <= options_.minimum_frames) return;
    for (row = start; row < end; ++row) use_up(row, column);
    keep(start, end, column);
  }

  void follow_both_ways(size_t middle, size_t column) {
    left_[middle * columns_ + column] = 0;
    size_t row = middle + 1, quiet = 0;
    for (; row + 1 < rows_ && quiet < options_.energy_tolerance; ++row) {
      quiet = weak(row, column) ? quiet + 1 : 0;
      use_up(row, column);
    }
    const auto end = static_cast<ptrdiff_t>(row) - 1 - static_cast<ptrdiff_t>(quiet);
    quiet = 0;
    auto back = static_cast<ptrdiff_t>(middle) - 1;
    for (; back > 0 && quiet < options_.energy_tolerance; --back) {
      quiet = weak(static_cast<size_t>(back), column) ? quiet + 1 : 0;
      use_up(static_cast<size_t>(back), column);
    }
    const auto start = back + 1 + static_cast<ptrdiff_t>(quiet);
    if (end - start > static_cast<ptrdiff_t>(options_.minimum_frames)) {
      keep(static_cast<size_t>(start), static_cast<size_t>(end), column);
    }
  }

  const Matrix& frames_;
  const NoteOptions& options_;
  std::vector<float> left_;
  size_t rows_, columns_;
  std::vector<FrameNote> notes_;
};

}  // namespace

std::vector<FrameNote> find_frame_notes(const Matrix& frames, const Matrix& onsets, const NoteOptions& options) {
  if (frames.rows != onsets.rows || frames.columns != onsets.columns ||
      frames.values.size() != frames.rows * frames.columns || onsets.values.size() != frames.values.size()) {
    throw std::runtime_error("notes: expected frames and onsets of one size, got " + std::to_string(frames.rows) +
                             " x " + std::to_string(frames.columns) + " and " + std::to_string(onsets.rows) + " x " +
                             std::to_string(onsets.columns));
  }
  Finder finder(frames, options);
  finder.from_onsets(options.infer_onsets ? with_inferred_onsets(frames, onsets)
                                          : std::vector<double>(onsets.values.begin(), onsets.values.end()));
  if (options.leftovers) finder.from_leftovers();
  return finder.take();
}

std::vector<Note> find_notes(const Matrix& frames, const Matrix& onsets, const NoteOptions& options) {
  std::vector<Note> notes;
  for (const FrameNote& note : find_frame_notes(frames, onsets, options)) {
    const double start = frame_time(note.start);
    notes.push_back({start, frame_time(note.end) - start, note.pitch, note.strength});
  }
  std::stable_sort(notes.begin(), notes.end(), [](const Note& a, const Note& b) {
    return a.start_s != b.start_s ? a.start_s < b.start_s : a.pitch < b.pitch;
  });
  return notes;
}

}  // namespace demo
