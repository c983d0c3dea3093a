#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "io/io_error.h"
#include "io/wav.h"

namespace moka::io {
namespace {

// A transition band from 0.914 to 1.0 of the lower Nyquist frequency, as libsoxr's HQ recipe has it.
constexpr double kHalfWidth = 93.05;     // zero crossings each side
constexpr int kStepsPerCrossing = 4096;  // linear interpolation between them errs below -150 dB
constexpr double kBeta = 13.04;          // Kaiser: side lobes below -125 dB
constexpr double kRolloff = 0.95687;     // centre of the transition
constexpr uint32_t kHighestRate = 10'000'000;
constexpr uint32_t kLargestRatio = 1000;
constexpr size_t kKeptPhases = 1024;

double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-18; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

/// Right half of the windowed sinc, kStepsPerCrossing values per zero crossing.
const std::vector<double>& kernel() {
  static const std::vector<double> table = [] {
    std::vector<double> values(static_cast<size_t>(kHalfWidth * kStepsPerCrossing) + 2, 0.0);
    const double scale = 1 / bessel_i0(kBeta);
    for (size_t i = 0; i < values.size() - 1; ++i) {
      const double x = static_cast<double>(i) / kStepsPerCrossing;
      const double edge = x / kHalfWidth;
      const double sinc = i == 0 ? 1.0 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
      values[i] = sinc * bessel_i0(kBeta * std::sqrt(std::max(0.0, 1 - edge * edge))) * scale;
    }
    return values;
  }();
  return table;
}

double kernel_at(double x) {
  const double position = std::abs(x) * kStepsPerCrossing;
  const auto index = static_cast<size_t>(position);
  const auto& table = kernel();
  if (index + 1 >= table.size()) return 0;
  const double fraction = position - static_cast<double>(index);
  return table[index] + fraction * (table[index + 1] - table[index]);
}

/// Weights of the inputs around an output that lies `fraction` of an input sample after the middle one.
void weights_of(double fraction, double cutoff, int reach, std::vector<float>& weights) {
  weights.resize(static_cast<size_t>(2 * reach + 1));
  double sum = 0;
  for (int t = -reach; t <= reach; ++t) sum += kernel_at((t - fraction) * cutoff);
  for (int t = -reach; t <= reach; ++t) {
    weights[static_cast<size_t>(t + reach)] = static_cast<float>(kernel_at((t - fraction) * cutoff) / sum);
  }
}

}  // namespace

std::vector<float> resample(std::span<const float> samples, uint32_t from, uint32_t to) {
  if (from == 0 || to == 0 || from > kHighestRate || to > kHighestRate) {
    fail("resample", "expected rates from 1 to ", kHighestRate, " Hz, got ", from, " to ", to);
  }
  if (from == to) return {samples.begin(), samples.end()};
  if (from / to >= kLargestRatio || to / from >= kLargestRatio) {
    fail("resample", "expected rates less than ", kLargestRatio, " times apart, got ", from, " to ", to, " Hz");
  }
  const uint64_t divisor = std::gcd(from, to);
  const uint64_t up = to / divisor, down = from / divisor;
  if (samples.size() > (uint64_t{1} << 60) / up || samples.size() * up / down > (uint64_t{1} << 32)) {
    fail("resample", "expected a result of at most 2^32 samples, got more");
  }
  const uint64_t length = (samples.size() * up + down - 1) / down;
  const double cutoff = kRolloff * std::min(1.0, static_cast<double>(to) / from);
  const int reach = static_cast<int>(std::ceil(kHalfWidth / cutoff)) + 1;

  std::vector<std::vector<float>> kept(up <= kKeptPhases ? up : 1);
  std::vector<float> result(length);
  const auto size = static_cast<int64_t>(samples.size());
  for (uint64_t i = 0; i < length; ++i) {
    const auto middle = static_cast<int64_t>(i * down / up);
    const uint64_t phase = i * down % up;
    std::vector<float>& weights = kept[up <= kKeptPhases ? phase : 0];
    if (up > kKeptPhases || weights.empty()) weights_of(static_cast<double>(phase) / up, cutoff, reach, weights);
    const int64_t first = std::max<int64_t>(0, middle - reach), last = std::min<int64_t>(size - 1, middle + reach);
    double sum = 0;
    for (int64_t t = first; t <= last; ++t) sum += static_cast<double>(weights[t - middle + reach]) * samples[t];
    result[i] = static_cast<float>(sum);
  }
  return result;
}

Audio resample(const Audio& audio, uint32_t to) {
  if (audio.sample_rate == to) return audio;
  Audio result{to, audio.channels, {}};
  std::vector<float> channel(audio.frames());
  for (uint32_t c = 0; c < audio.channels; ++c) {
    for (size_t i = 0; i < channel.size(); ++i) channel[i] = audio.samples[i * audio.channels + c];
    const auto converted = resample(channel, audio.sample_rate, to);
    result.samples.resize(converted.size() * audio.channels);
    for (size_t i = 0; i < converted.size(); ++i) result.samples[i * audio.channels + c] = converted[i];
  }
  return result;
}

}  // namespace moka::io
