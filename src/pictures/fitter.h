// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pictures/frame.h"
#include "pictures/placement.h"
#include "pictures/sampler.h"

namespace moka::pictures {

/// Where the rows of a fitted picture go.
class ColorRows {
 public:
  virtual ~ColorRows() = default;
  /// Room for the numbers of a row of the placement, 0 to 255, for channel 0 (red, or gray), 1 or 2.
  virtual float* row(int channel, int64_t y) = 0;
  virtual void done(int64_t y) = 0;
};

/// Crops, resamples and converts pictures of one size to colors in one pass. Colors are cut off at 0 and 255 before
/// they are resampled, and are within 0.15 of those computed with real numbers.
class Fitter {
 public:
  /// `channels`: 1 (luma in the full range) or 3.
  Fitter(int64_t width, int64_t height, const Placement& placement, int channels);

  bool is_for(int64_t width, int64_t height, const Placement& placement, int channels) const {
    return width == width_ && height == height_ && placement == placement_ && channels == channels_;
  }
  const Placement& placement() const { return placement_; }
  int channels() const { return channels_; }
  size_t bytes() const;
  /// The frame has the size that this was made for.
  void run(const Frame& frame, ColorRows& to);

 private:
  /// Rows of the picture after which row `result` ends; -1: none.
  struct Segment {
    int64_t first, rows, weights, result;
  };
  void add_rows_of_results(size_t source);
  void add_columns_of_results(size_t source);

  int64_t width_, height_;
  Placement placement_;
  int channels_;
  std::vector<Segment> segments_;
  std::vector<PairOfWeights> ending_, beginning_;
  int64_t first_column_ = 0, columns_ = 0, taps_ = 0, stride_ = 0;
  std::vector<int32_t> firsts_;
  std::vector<int16_t> weights_, line_, carry_;
};

/// Writes the planes of a picture of width x height: the fitted frame on black. `planes`: of each channel.
void fit_planes(Fitter& fitter, const Frame& frame, int64_t width, int64_t height, const std::array<float*, 3>& planes);
/// Dense rows of red, green and blue or of gray, rounded.
void fit_bytes(Fitter& fitter, const Frame& frame, int64_t width, int64_t height, uint8_t* to);

}  // namespace moka::pictures
