// SPDX-License-Identifier: Apache-2.0
#include "pictures/frame.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace moka::pictures {

std::string_view name_of(Format format) {
  switch (format) {
    case Format::nv12: return "nv12";
    case Format::nv12_full: return "nv12_full";
    case Format::i420: return "i420";
    case Format::i420_full: return "i420_full";
    case Format::p010: return "p010";
    case Format::p010_full: return "p010_full";
  }
  return "?";
}

bool is_biplanar(Format format) { return format != Format::i420 && format != Format::i420_full; }
int planes_of(Format format) { return is_biplanar(format) ? 2 : 3; }

std::string_view plane_name(Format format, int plane) {
  if (plane == 0) return "luma";
  return is_biplanar(format) ? "chroma" : plane == 1 ? "Cb" : "Cr";
}

int64_t bytes_per_sample(Format format) { return format == Format::p010 || format == Format::p010_full ? 2 : 1; }

bool is_full_range(Format format) {
  return format == Format::nv12_full || format == Format::i420_full || format == Format::p010_full;
}

int64_t row_bytes_of(Format format, int plane, int64_t width) {
  const int64_t samples = plane == 0 ? width : (width + 1) / 2 * (is_biplanar(format) ? 2 : 1);
  return samples * bytes_per_sample(format);
}

int64_t rows_of(int plane, int64_t height) { return plane == 0 ? height : (height + 1) / 2; }

int64_t contiguous_bytes(Format format, int64_t width, int64_t height) {
  int64_t bytes = 0;
  for (int p = 0; p < planes_of(format); p++) bytes += row_bytes_of(format, p, width) * rows_of(p, height);
  return bytes;
}

Coefficients coefficients_of(Format format, Matrix matrix) {
  struct Weights {
    double red, blue;
  };
  constexpr Weights kWeights[] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};
  const auto [red, blue] = kWeights[static_cast<int>(matrix)];
  const double green = 1 - red - blue;
  const bool is_full = is_full_range(format), is_deep = bytes_per_sample(format) == 2;
  // 10 bits divided by 4 reach 255.75.
  const double full = is_deep ? 255 / 255.75 : 1;
  const double luma = is_full ? full : 255.0 / 219, chroma = 2 * (is_full ? full : 255.0 / 224);
  return {luma,
          is_full ? 0.0 : 16.0,
          chroma * (1 - red),
          -chroma * blue * (1 - blue) / green,
          -chroma * red * (1 - red) / green,
          chroma * (1 - blue)};
}

namespace {

/// Fixed-point numbers with 20 bits after the point: sums of three products of 10 bits fit in 32 bits.
constexpr int kPoint = 20;

int32_t fixed(double value) { return static_cast<int32_t>(std::lround(value * (1 << kPoint))); }

uint8_t byte_of(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kPoint, 0, 255)); }

/// Rows of samples as integers of 8 or 10 bits.
class Samples {
 public:
  explicit Samples(const Frame& frame)
      : frame_(frame),
        luma_(static_cast<size_t>(frame.width)),
        u_(static_cast<size_t>((frame.width + 1) / 2)),
        v_(u_.size()) {}

  const std::vector<int32_t>& luma(int64_t y) {
    read(row(0, y), 0, 1, luma_);
    return luma_;
  }
  /// Sets u() and v().
  void read_chroma(int64_t y) {
    const bool biplanar = is_biplanar(frame_.format);
    read(row(1, y), 0, biplanar ? 2 : 1, u_);
    read(row(biplanar ? 1 : 2, y), biplanar ? 1 : 0, biplanar ? 2 : 1, v_);
  }
  const std::vector<int32_t>& u() const { return u_; }
  const std::vector<int32_t>& v() const { return v_; }

 private:
  const uint8_t* row(int plane, int64_t y) const {
    const auto p = static_cast<size_t>(plane);
    return frame_.data[p] + y * frame_.row_bytes[p];
  }
  void read(const uint8_t* from, size_t first, size_t step, std::vector<int32_t>& to) const {
    if (bytes_per_sample(frame_.format) == 1) {
      for (size_t i = 0; i < to.size(); i++) to[i] = from[first + i * step];
      return;
    }
    for (size_t i = 0; i < to.size(); i++) {
      const size_t at = 2 * (first + i * step);
      to[i] = (from[at] | from[at + 1] << 8) >> 6;
    }
  }

  const Frame& frame_;
  std::vector<int32_t> luma_, u_, v_;
};

}  // namespace

void to_rgb(const Frame& frame, uint8_t* to) {
  const Coefficients c = coefficients_of(frame.format, frame.matrix);
  const int32_t scale = bytes_per_sample(frame.format) == 2 ? 4 : 1, neutral = 128 * scale;
  const int32_t luma = fixed(c.luma / scale), red_v = fixed(c.red_v / scale), green_u = fixed(c.green_u / scale);
  const int32_t green_v = fixed(c.green_v / scale), blue_u = fixed(c.blue_u / scale);
  const int32_t offset = (1 << (kPoint - 1)) - fixed(c.luma * c.black);
  Samples samples(frame);
  for (int64_t y = 0; y < frame.height; y++) {
    const auto& line = samples.luma(y);
    if (y % 2 == 0) samples.read_chroma(y / 2);
    for (size_t x = 0; x < line.size(); x++, to += 3) {
      const int32_t gray = line[x] * luma + offset, u = samples.u()[x / 2] - neutral, v = samples.v()[x / 2] - neutral;
      to[0] = byte_of(gray + v * red_v);
      to[1] = byte_of(gray + u * green_u + v * green_v);
      to[2] = byte_of(gray + u * blue_u);
    }
  }
}

void to_gray(const Frame& frame, uint8_t* to) {
  const Coefficients c = coefficients_of(frame.format, frame.matrix);
  const int32_t luma = fixed(c.luma / (bytes_per_sample(frame.format) == 2 ? 4 : 1));
  const int32_t offset = (1 << (kPoint - 1)) - fixed(c.luma * c.black);
  Samples samples(frame);
  for (int64_t y = 0; y < frame.height; y++)
    for (const int32_t sample : samples.luma(y)) *to++ = byte_of(sample * luma + offset);
}

}  // namespace moka::pictures
