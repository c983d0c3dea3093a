// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "ops/common/ml.h"

namespace moka::ops {

namespace {

constexpr int64_t kWindow = 400, kHop = 160;  // samples: 25 and 10 milliseconds at 16 kHz
constexpr int kFft = 512, kBins = kFft / 2 + 1, kBands = 64;
constexpr double kRate = 16000, kLowest = 125, kHighest = 7500, kLogOffset = 0.01;

Result<std::vector<Type>> infer_ml_vggish_features(const OpCall& call) {
  const int64_t n = ml::count_of(call.type("x"));
  if (n >= 0 && n < kWindow) return call.error("x", cat("at least ", kWindow, " samples"), cat(n));
  return one(Type::tensor(DType::fp64, {1, n < 0 ? kAnyDim : 1 + (n - kWindow) / kHop, kBands}));
}

/// In place, of kFft numbers: decimation in time.
void fft(std::array<std::complex<double>, kFft>& x) {
  for (int i = 1, j = 0; i < kFft; i++) {
    int bit = kFft >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[static_cast<size_t>(i)], x[static_cast<size_t>(j)]);
  }
  for (int length = 2; length <= kFft; length *= 2) {
    const int half = length / 2;
    for (int k = 0; k < half; k++) {
      const std::complex<double> turn = std::polar(1.0, -2 * std::numbers::pi * k / length);
      for (int i = k; i < kFft; i += length) {
        const auto a = static_cast<size_t>(i), b = static_cast<size_t>(i + half);
        const std::complex<double> odd = x[b] * turn;
        x[b] = x[a] - odd;
        x[a] += odd;
      }
    }
  }
}

double mel(double hertz) { return 1127 * std::log(1 + hertz / 700); }

/// Triangles whose corners are evenly spaced in mel, over the frequencies of the bins. Bin 0 has no weight.
const std::array<std::array<double, kBins>, kBands>& bands() {
  static const auto all = [] {
    std::array<std::array<double, kBins>, kBands> w{};
    const double low = mel(kLowest), step = (mel(kHighest) - low) / (kBands + 1);
    for (int band = 0; band < kBands; band++) {
      const double begin = low + band * step, center = begin + step, end = center + step;
      for (int bin = 1; bin < kBins; bin++) {
        const double at = mel(kRate / 2 * bin / (kBins - 1));
        const double weight = std::min((at - begin) / (center - begin), (end - at) / (end - center));
        w[static_cast<size_t>(band)][static_cast<size_t>(bin)] = std::max(0.0, weight);
      }
    }
    return w;
  }();
  return all;
}

Status ml_vggish_features_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  auto* y = out[0].as<double>();
  const int64_t frames = out[0].shape[1];
  std::array<double, kBins> magnitude;
  for (int64_t f = 0; f < frames; f++) {
    std::array<std::complex<double>, kFft> frame{};
    for (int64_t i = 0; i < kWindow; i++) {
      const double hann = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / kWindow);
      frame[static_cast<size_t>(i)] = load_f64(x, f * kHop + i) * hann;
    }
    fft(frame);
    for (size_t i = 0; i < kBins; i++) magnitude[i] = std::abs(frame[i]);
    for (size_t band = 0; band < kBands; band++) {
      double sum = 0;
      for (size_t i = 0; i < kBins; i++) sum += magnitude[i] * bands()[band][i];
      *y++ = std::log(sum + kLogOffset);
    }
  }
  return {};
}

}  // namespace

OpDef define_ml_vggish_features() {
  return ml::define(
             "ml_vggish_features",
             "The log mel spectrogram of sound at 16 kHz that VGGish reads: [1, frames, 64], of which each frame is "
             "25 ms long and begins 10 ms after the one before.")
      .in("x", kFloats)
      .infer(infer_ml_vggish_features)
      .reference(ml_vggish_features_reference)
      .note(
          "A periodic Hann window, the magnitude of an FFT of 512, 64 triangles from 125 to 7500 Hz that are even in "
          "mel, "
          "and log(x + 0.01). Samples behind the last whole frame are left out.",
          "Core ML's definition of soundAnalysisPreprocessing; the bands are those of VGGish")
      .build();
}

}  // namespace moka::ops
