// SPDX-License-Identifier: Apache-2.0
#include "pictures/fitter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/pixels.h"
#include "pictures/taps.h"

namespace moka::pictures {

namespace {

/// Taps in weights of kWeightBits without zeros at the ends. They add up to 1, but a single one is a little less.
std::vector<Taps<int16_t>> words_of(const std::vector<Taps<double>>& taps) {
  std::vector<Taps<int16_t>> all(taps.size());
  for (size_t i = 0; i < taps.size(); i++) {
    // The rounded sums of the first weights, so that their differences add up.
    double sum = 0;
    int64_t before = 0;
    std::vector<int16_t> words;
    for (const double w : taps[i].weights) {
      sum += w;
      const int64_t now = std::llround(sum * (1 << kWeightBits));
      words.push_back(static_cast<int16_t>(std::min<int64_t>(now - before, INT16_MAX)));
      before = now;
    }
    size_t first = 0, last = words.size();
    while (first + 1 < last && words[first] == 0) first++;
    while (last > first + 1 && words[last - 1] == 0) last--;
    all[i].first = taps[i].first + first;
    all[i].weights.assign(words.begin() + static_cast<std::ptrdiff_t>(first),
                          words.begin() + static_cast<std::ptrdiff_t>(last));
  }
  return all;
}

size_t end_of(const Taps<int16_t>& taps) { return taps.first + taps.weights.size(); }

PairOfWeights pair_of(const Taps<int16_t>* taps, size_t at) {
  if (taps == nullptr || at < taps->first || at >= end_of(*taps)) return 0;
  const auto w = static_cast<uint16_t>(taps->weights[at - taps->first]);
  return static_cast<PairOfWeights>(w | static_cast<uint32_t>(w) << 16);
}

constexpr int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

int16_t word(double value) { return static_cast<int16_t>(std::lround(value)); }

/// Samples are multiplied by 128, differences of chroma by 256, and products lose kWeightBits.
ColorWords words_of(const Coefficients& c) {
  constexpr double kLuma = 1 << (kColorBits + kWeightBits - 7), kChroma = 1 << (kColorBits + kWeightBits - 8);
  return {word(kLuma * c.luma),      word(kChroma * c.red_v),  word(kChroma * c.green_u),
          word(kChroma * c.green_v), word(kChroma * c.blue_u), word(kBias - c.luma * c.black * (1 << kColorBits))};
}

Storage storage_of(Format format) {
  if (bytes_per_sample(format) == 2) return Storage::words;
  return is_biplanar(format) ? Storage::biplanar : Storage::planar;
}

}  // namespace

Fitter::Fitter(int64_t width, int64_t height, const Placement& placement, int channels)
    : width_(width), height_(height), placement_(placement), channels_(channels) {
  add_rows_of_results(static_cast<size_t>(height));
  add_columns_of_results(static_cast<size_t>(width));
  const auto words = static_cast<size_t>(stride_ * channels);
  line_.resize(words + static_cast<size_t>(taps_));
  carry_.resize(words);
}

size_t Fitter::bytes() const {
  return segments_.capacity() * sizeof(Segment) +
         (ending_.capacity() + beginning_.capacity() + firsts_.capacity()) * 4 +
         (weights_.capacity() + line_.capacity() + carry_.capacity()) * 2;
}

void Fitter::add_rows_of_results(size_t source) {
  const auto taps = words_of(
      taps_for<double>(source, placement_.source_y, placement_.source_height, static_cast<size_t>(placement_.height)));
  const auto add = [&](size_t first, size_t last, const Taps<int16_t>* ends, const Taps<int16_t>* begins,
                       int64_t result) {
    segments_.push_back({static_cast<int64_t>(first), static_cast<int64_t>(last - first),
                         static_cast<int64_t>(ending_.size()), result});
    for (size_t y = first; y < last; y++) {
      ending_.push_back(pair_of(ends, y));
      beginning_.push_back(pair_of(begins, y));
    }
  };
  const size_t n = taps.size();
  // A row of the picture belongs to two results when it shrinks.
  bool in_pairs = true;
  for (size_t i = 0; i + 1 < n; i++)
    in_pairs &= taps[i].first <= taps[i + 1].first &&
                end_of(taps[i]) <= (i + 2 < n ? taps[i + 2].first : end_of(taps[n - 1])) &&
                end_of(taps[i]) >= taps[i + 1].first;
  if (!in_pairs) {
    for (size_t i = 0; i < n; i++) add(taps[i].first, end_of(taps[i]), &taps[i], nullptr, static_cast<int64_t>(i));
    return;
  }
  const auto first_of = [&](size_t i) { return i < n ? taps[i].first : end_of(taps[n - 1]); };
  add(first_of(0), first_of(1), nullptr, &taps[0], -1);
  for (size_t i = 0; i < n; i++)
    add(first_of(i + 1), first_of(i + 2), &taps[i], i + 1 < n ? &taps[i + 1] : nullptr, static_cast<int64_t>(i));
}

void Fitter::add_columns_of_results(size_t source) {
  const auto taps = words_of(
      taps_for<double>(source, placement_.source_x, placement_.source_width, static_cast<size_t>(placement_.width)));
  size_t first = source, last = 0, most = 0;
  for (const auto& t : taps) {
    first = std::min(first, t.first);
    last = std::max(last, end_of(t));
    most = std::max(most, t.weights.size());
  }
  first -= first % 2;
  first_column_ = static_cast<int64_t>(first);
  columns_ = static_cast<int64_t>(last - first);
  stride_ = rounded_up(columns_, kTile);
  taps_ = rounded_up(static_cast<int64_t>(most), kTapsOfStep);
  const auto padded = static_cast<size_t>(rounded_up(placement_.width, kGroup));
  firsts_.resize(padded);
  weights_.resize(padded * static_cast<size_t>(taps_));
  for (size_t i = 0; i < taps.size(); i++) {
    firsts_[i] = static_cast<int32_t>(taps[i].first - first);
    std::copy(taps[i].weights.begin(), taps[i].weights.end(), &weights_[i * static_cast<size_t>(taps_)]);
  }
}

void Fitter::run(const Frame& frame, ColorRows& to) {
  const Storage storage = storage_of(frame.format);
  const Sampler& loops = sampler();
  const auto add_rows = loops.add_rows[static_cast<int>(storage)][channels_ == 3];
  const ColorWords words = words_of(coefficients_of(frame.format, frame.matrix));
  const int64_t sample = bytes_per_sample(frame.format);
  const int64_t chroma_at = first_column_ / 2 * sample * (is_biplanar(frame.format) ? 2 : 1);
  std::fill(carry_.begin(), carry_.end(), int16_t{0});
  for (const Segment& s : segments_) {
    RowsToAdd rows{};
    rows.luma = frame.data[0] + s.first * frame.row_bytes[0] + first_column_ * sample;
    for (size_t p = 1; p < static_cast<size_t>(planes_of(frame.format)); p++)
      rows.chroma[p - 1] = frame.data[p] + s.first / 2 * frame.row_bytes[p] + chroma_at;
    rows.luma_bytes = frame.row_bytes[0];
    rows.chroma_bytes[0] = frame.row_bytes[1];
    rows.chroma_bytes[1] = frame.row_bytes[2];
    rows.rows = s.rows;
    rows.is_odd = s.first % 2 != 0;
    rows.columns = columns_;
    rows.ending = ending_.data() + s.weights;
    rows.beginning = beginning_.data() + s.weights;
    rows.line = line_.data();
    rows.carry = carry_.data();
    rows.stride = stride_;
    rows.words = &words;
    add_rows(rows);
    if (s.result < 0) continue;
    for (int c = 0; c < channels_; c++)
      loops.mix(
          {line_.data() + c * stride_, placement_.width, firsts_.data(), weights_.data(), taps_, to.row(c, s.result)});
    to.done(s.result);
  }
}

namespace {

class Planes : public ColorRows {
 public:
  Planes(const Placement& placement, int64_t width, const std::array<float*, 3>& planes)
      : width_(width), first_(placement.y * width + placement.x), planes_(planes) {}
  float* row(int channel, int64_t y) override { return planes_[static_cast<size_t>(channel)] + first_ + y * width_; }
  void done(int64_t) override {}

 private:
  int64_t width_, first_;
  std::array<float*, 3> planes_;
};

class Bytes : public ColorRows {
 public:
  Bytes(const Fitter& fitter, int64_t width, uint8_t* to)
      : placement_(fitter.placement()), channels_(fitter.channels()), width_(width), to_(to) {
    line_.resize(static_cast<size_t>(placement_.width) * static_cast<size_t>(channels_));
    bytes_.resize(line_.size());
  }
  float* row(int channel, int64_t) override { return line_.data() + channel * placement_.width; }
  void done(int64_t y) override {
    float_to_byte(line_.data(), bytes_.data(), line_.size());
    uint8_t* to = to_ + ((placement_.y + y) * width_ + placement_.x) * channels_;
    const auto n = static_cast<size_t>(placement_.width);
    for (size_t x = 0; x < n; x++)
      for (size_t c = 0; c < static_cast<size_t>(channels_); c++) *to++ = bytes_[c * n + x];
  }

 private:
  const Placement placement_;
  const int channels_;
  const int64_t width_;
  uint8_t* const to_;
  std::vector<float> line_;
  std::vector<uint8_t> bytes_;
};

bool is_whole(const Placement& p, int64_t width, int64_t height) { return p.width == width && p.height == height; }

}  // namespace

void fit_planes(Fitter& fitter, const Frame& frame, int64_t width, int64_t height,
                const std::array<float*, 3>& planes) {
  if (!is_whole(fitter.placement(), width, height))
    for (int c = 0; c < fitter.channels(); c++) std::fill_n(planes[static_cast<size_t>(c)], width * height, 0.0f);
  Planes to(fitter.placement(), width, planes);
  fitter.run(frame, to);
}

void fit_bytes(Fitter& fitter, const Frame& frame, int64_t width, int64_t height, uint8_t* to) {
  if (!is_whole(fitter.placement(), width, height))
    std::memset(to, 0, static_cast<size_t>(width * height * fitter.channels()));
  Bytes rows(fitter, width, to);
  fitter.run(frame, rows);
}

}  // namespace moka::pictures
