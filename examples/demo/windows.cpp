// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <string>

#include "demo/notes.h"

namespace demo {
namespace {

constexpr size_t kHalfOverlap = kOverlapFrames / 2;
constexpr size_t kKeptFrames = kWindowFrames - kOverlapFrames;

}  // namespace

std::vector<std::vector<float>> windows(std::span<const float> samples) {
  const size_t lead = kHalfOverlap * kHop;
  const size_t padded = lead + samples.size();
  std::vector<std::vector<float>> result;
  for (size_t start = 0; start < padded; start += kWindowHop) {
    std::vector<float> window(kWindow, 0.0f);
    const size_t from = std::max(start, lead), to = std::min(start + kWindow, padded);
    if (from < to) std::copy_n(samples.begin() + static_cast<ptrdiff_t>(from - lead), to - from, &window[from - start]);
    result.push_back(std::move(window));
  }
  return result;
}

Matrix unwrap(const std::vector<std::vector<float>>& outputs, size_t columns, size_t samples) {
  const size_t rows = std::min(samples * kKeptFrames / kWindowHop, outputs.size() * kKeptFrames);
  Matrix joined{rows, columns, {}};
  joined.values.reserve(outputs.size() * kKeptFrames * columns);
  for (const auto& output : outputs) {
    if (output.size() != kWindowFrames * columns) {
      throw std::runtime_error("unwrap: expected " + std::to_string(kWindowFrames) + " x " + std::to_string(columns) +
                               " values a window, got " + std::to_string(output.size()));
    }
    const auto first = output.begin() + static_cast<ptrdiff_t>(kHalfOverlap * columns);
    joined.values.insert(joined.values.end(), first, first + static_cast<ptrdiff_t>(kKeptFrames * columns));
  }
  joined.values.resize(rows * columns);
  return joined;
}

double frame_time(size_t frame) {
  const size_t window = frame / kKeptFrames, within = frame % kKeptFrames;
  return static_cast<double>(window * kWindowHop + within * kHop) / kSampleRate;
}

}  // namespace demo
