#include "devices/cpu/common/winograd_tiles.h"

#include <cmath>
#include <limits>
#include <span>
#include <tuple>

namespace moka::devices::cpu {

using vector::winograds;

namespace {

constexpr float kLargest = std::numeric_limits<float>::max(), kSmaller = 0x1p-64f;
constexpr int64_t kMostBlock = 16, kMostTaps = 9, kMostPixels = 64, kMostChannels = 8;

/// A result to compute directly: where its window begins, and its place in y.
struct Pixel {
  int64_t front, top, left;
  float* y;
};

/// Where taps [first, first + n) of the pixels' windows are in the volume of an input channel. Outside the volume: -1.
void places_of(const WinogradBlocking& p, std::span<const Pixel> pixels, int64_t first, int64_t n, int64_t* to) {
  const int64_t lines = p.w.kernel[1], columns = p.w.kernel[2];
  for (const Pixel& pixel : pixels)
    for (int64_t t = first; t < first + n; t++) {
      const int64_t d = pixel.front + t / (lines * columns), h = pixel.top + t / columns % lines,
                    v = pixel.left + t % columns;
      const bool inside = d >= 0 && d < p.w.in[0] && h >= 0 && h < p.w.in[1] && v >= 0 && v < p.w.in[2];
      *to++ = inside ? ((d * p.w.in[1] + h) * p.w.in[2] + v) * p.block() : -1;
    }
}

/// Computes one block of channels of some pixels of an image.
void sum_directly(const WinogradBlocking& p, const float* x, int64_t image, const Taps& weights, const float* bias,
                  int64_t group, std::span<const Pixel> pixels) {
  const int64_t block = p.block(), all = p.w.taps(), used = std::min(block, p.out - group * block);
  const int64_t at_once = all <= kMostTaps ? kMostChannels : 1;
  alignas(64) double sums[kMostPixels * kMostBlock] = {};
  int64_t places[kMostPixels * kMostTaps];
  const auto store = [&] {
    for (size_t i = 0; i < pixels.size(); i++)
      for (int64_t o = 0; o < block; o++)
        pixels[i].y[o] = static_cast<float>(sums[static_cast<int64_t>(i) * block + o] + static_cast<double>(bias[o]));
  };
  // Infinities usually meet weights of both signs in the first channels. What follows cannot change a NaN.
  const auto all_nan = [&] {
    for (int64_t i = 0; i < static_cast<int64_t>(pixels.size()); i++)
      for (int64_t o = 0; o < used; o++)
        if (!std::isnan(sums[i * block + o])) return false;
    return true;
  };
  for (int64_t first = 0; first < all; first += kMostTaps) {
    const int64_t n = std::min(kMostTaps, all - first), count = static_cast<int64_t>(pixels.size()) * n;
    places_of(p, pixels, first, n, places);
    for (int64_t c = 0; c < p.in; c += at_once) {
      const int64_t some = std::min(at_once, p.in - c);
      alignas(64) double taps[kMostChannels * kMostTaps * kMostBlock] = {};
      for (int64_t o = 0; o < used; o++) {
        float line[kMostChannels * kMostTaps];
        weights.read(((group * block + o) * p.in + c) * all + first, some * n, line);
        for (int64_t t = 0; t < some * n; t++) taps[t * block + o] = static_cast<double>(line[t]);
      }
      for (int64_t k = 0; k < some; k++) {
        const float* from = x + (image * p.in_groups + (c + k) / block) * p.in_volume() + (c + k) % block;
        double values[kMostPixels * kMostTaps];
        for (int64_t i = 0; i < count; i++) values[i] = places[i] < 0 ? 0 : static_cast<double>(from[places[i]]);
        winograds().sum_taps(taps + k * n * block, n, values, static_cast<int64_t>(pixels.size()), sums);
      }
      if (all_nan()) return store();
    }
  }
  store();
}

/// Calls f(first pixel, pixels) for the lines of input pixels that the windows of `rows` x `columns` outputs of a slice
/// cover. The first window begins at [front, top, left]. Returns false as soon as f does.
template <class F>
bool each_line(const WinogradBlocking& p, const float* x, int64_t image, int64_t front, int64_t top, int64_t left,
               int64_t rows, int64_t columns, F f) {
  const int64_t lengths[] = {p.w.kernel[0], (rows - 1) * p.w.strides[1] + p.w.kernel[1],
                             (columns - 1) * p.w.strides[2] + p.w.kernel[2]},
                starts[] = {front, top, left};
  int64_t begin[3], end[3];
  for (int axis = 0; axis < 3; axis++) {
    begin[axis] = std::max<int64_t>(starts[axis], 0);
    end[axis] = std::min(starts[axis] + lengths[axis], p.w.in[axis]);
  }
  if (begin[2] >= end[2]) return true;
  for (int64_t g = 0; g < p.in_groups; g++) {
    const float* volume = x + (image * p.in_groups + g) * p.in_volume();
    for (int64_t d = begin[0]; d < end[0]; d++)
      for (int64_t h = begin[1]; h < end[1]; h++)
        if (!f(volume + ((d * p.w.in[1] + h) * p.w.in[2] + begin[2]) * p.block(), end[2] - begin[2])) return false;
  }
  return true;
}

/// The tiles of a row in the output.
struct Outputs {
  int64_t wide, top, left, rows, columns;

  Outputs(const WinogradBlocking& p, const Row& r) : wide(p.f->across.out), top(r.y * p.f->down.out), left(r.x * wide) {
    std::tie(rows, columns) = p.outputs(r);
  }

  /// Calls f(column, columns) for each tile of y that has a result that is infinite or NaN.
  template <class F>
  void each_odd(const WinogradBlocking& p, const float* y, F f) const {
    for (int64_t t = 0; t < columns; t += wide) {
      const int64_t width = std::min(wide, columns - t);
      bool odd = false;
      for (int64_t i = 0; i < rows; i++)
        odd |= !winograds().are_finite(y + (i * p.w.out[2] + t) * p.block(), width * p.block());
      if (odd) f(t, width);
    }
  }
};

/// Computes results of a row of tiles directly, some pixels at a time.
class Direct {
 public:
  Direct(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r, int64_t group)
      : p_(p), x_(x), weights_(weights), bias_(bias), row_(r), group_(group), at_(p, r) {}
  ~Direct() { finish(); }
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;

  int64_t front() const { return row_.slice * p_.w.strides[0] - p_.w.pads_begin[0]; }
  int64_t top(int64_t i) const { return (at_.top + i) * p_.w.strides[1] - p_.w.pads_begin[1]; }
  int64_t left(int64_t j) const { return (at_.left + j) * p_.w.strides[2] - p_.w.pads_begin[2]; }

  /// Whether the inputs of `rows` x `columns` outputs are finite.
  bool sees_finite(int64_t i, int64_t j, int64_t rows, int64_t columns) const {
    return each_line(p_, x_, row_.image, front(), top(i), left(j), rows, columns,
                     [&](const float* line, int64_t n) { return winograds().are_finite(line, n * p_.block()); });
  }
  /// Whether the window of pixel [i, j] holds a NaN. Such a result is NaN in all channels, whatever the weights.
  bool sees_nan(int64_t i, int64_t j) const {
    return !each_line(p_, x_, row_.image, front(), top(i), left(j), 1, 1, [&](const float* line, int64_t n) {
      for (int64_t k = 0; k < n; k++)
        if (winograds().has_nan(line + k * p_.block())) return false;
      return true;
    });
  }

  /// Pixel [i, j] of the row, which sees an infinity, a NaN or an overflow.
  void pixel(int64_t i, int64_t j, float* y) {
    const int64_t block = p_.block(), used = std::min(block, p_.out - group_ * block);
    float* to = y + (i * p_.w.out[2] + j) * block;
    if (sees_nan(i, j)) {
      std::fill_n(to, used, std::numeric_limits<float>::quiet_NaN());
      std::fill_n(to + used, block - used, 0.0f);
      return;
    }
    pixels_[count_++] = {front(), top(i), left(j), to};
    if (count_ == kMostPixels) finish();
  }

 private:
  void finish() {
    if (count_ > 0) sum_directly(p_, x_, row_.image, weights_, bias_, group_, std::span(pixels_, count_));
    count_ = 0;
  }

  const WinogradBlocking& p_;
  const float* x_;
  const Taps& weights_;
  const float* bias_;
  const Row& row_;
  int64_t group_;
  Outputs at_;
  Pixel pixels_[kMostPixels];
  size_t count_ = 0;
};

}  // namespace

void transform_row(const WinogradBlocking& p, const float* plane, const Row& r, bool again, float* v) {
  const int64_t height = p.w.in[1], width = p.w.in[2], block = p.block();
  const vector::WinogradAxis &down = p.f->down, &across = p.f->across;
  const int64_t top = r.y * down.out * down.stride - p.w.pads_begin[1],
                left = r.x * across.out * across.stride - p.w.pads_begin[2];
  const float* lines[vector::kMostLines];
  for (int i = 0; i < down.in; i++)
    lines[i] = plane != nullptr && top + i >= 0 && top + i < height ? plane + (top + i) * width * block : nullptr;
  if (!again) return p.f->input(lines, width, left, r.count, v, p.in_step, p.in_groups * block);
  alignas(64) float scaled[vector::kMostLines * vector::kMostColumns * kMostBlock];
  const int64_t begin = std::clamp<int64_t>(left, 0, width),
                end = std::clamp((r.count - 1) * across.out * across.stride + across.in + left, begin, width);
  for (int i = 0; i < down.in; i++) {
    if (lines[i] == nullptr) continue;
    const float* from = lines[i] + begin * block;
    float* to = scaled + i * vector::kMostColumns * block;
    for (int64_t k = 0; k < (end - begin) * block; k++) to[k] = std::fabs(from[k]) <= kLargest ? from[k] * kSmaller : 0;
    lines[i] = to;
  }
  p.f->input(lines, end - begin, left - begin, r.count, v, p.in_step, p.in_groups * block);
}

bool correct_tiles(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r,
                   int64_t group, float* y) {
  const Outputs at(p, r);
  Direct direct(p, x, weights, bias, r, group);
  bool left = false;
  at.each_odd(p, y, [&](int64_t t, int64_t width) {
    if (left) return;
    const bool finite = direct.sees_finite(0, t, at.rows, width);
    for (int64_t i = 0; i < at.rows && !left; i++)
      for (int64_t j = t; j < t + width && !left; j++) left = finite || direct.sees_finite(i, j, 1, 1);
    for (int64_t i = 0; i < at.rows && !left; i++)
      for (int64_t j = t; j < t + width; j++) direct.pixel(i, j, y);
  });
  return left;
}

void correct_again(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r,
                   int64_t group, const float* made, float* y) {
  const int64_t block = p.block();
  const Outputs at(p, r);
  alignas(64) float sums[vector::kMostLines * vector::kMostColumns * kMostBlock];
  alignas(64) const float none[kMostBlock] = {};
  p.f->output(made, p.out_step, p.panel(), none, r.count, at.rows, at.columns, sums, at.columns * block);
  Direct direct(p, x, weights, bias, r, group);
  at.each_odd(p, y, [&](int64_t t, int64_t width) {
    const bool finite = direct.sees_finite(0, t, at.rows, width);
    for (int64_t i = 0; i < at.rows; i++)
      for (int64_t j = t; j < t + width; j++) {
        const float* sum = sums + (i * at.columns + j) * block;
        if (!winograds().are_finite(sum, block) || (!finite && !direct.sees_finite(i, j, 1, 1))) {
          direct.pixel(i, j, y);
          continue;
        }
        for (int64_t k = 0; k < block; k++) y[(i * p.w.out[2] + j) * block + k] = sum[k] / kSmaller + bias[k];
      }
  });
}

}  // namespace moka::devices::cpu
