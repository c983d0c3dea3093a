// SPDX-License-Identifier: Apache-2.0
#include <soxr.h>

#include "io/io_error.h"
#include "io/sound.h"

namespace moka::io {
namespace {

constexpr uint32_t kHighestRate = 10'000'000;
constexpr uint32_t kLargestRatio = 1000;

}  // namespace

Audio resample(const Audio& audio, uint32_t to) {
  const uint64_t from = audio.sample_rate;
  if (from == 0 || to == 0 || from > kHighestRate || to > kHighestRate) {
    fail("resample", "expected rates from 1 to ", kHighestRate, " Hz, got ", from, " to ", to);
  }
  if (from == to) return audio;
  if (from / to >= kLargestRatio || to / from >= kLargestRatio) {
    fail("resample", "expected rates less than ", kLargestRatio, " times apart, got ", from, " to ", to, " Hz");
  }
  const uint64_t frames = audio.frames();
  if (frames > (uint64_t{1} << 32) || frames * to / from > (uint64_t{1} << 32)) {
    fail("resample", "expected a result of at most 2^32 samples, got more");
  }
  Audio result{to, audio.channels, {}};
  const auto length = static_cast<size_t>((frames * to + from - 1) / from);
  result.samples.resize(length * audio.channels);
  if (length == 0) return result;
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  size_t done = 0;
  const soxr_error_t error = soxr_oneshot(static_cast<double>(from), to, audio.channels, audio.samples.data(), frames,
                                          nullptr, result.samples.data(), length, &done, nullptr, &quality, nullptr);
  if (error) fail("resample", soxr_strerror(error));
  return result;
}

std::vector<float> resample(std::span<const float> samples, uint32_t from, uint32_t to) {
  return resample(Audio{from, 1, {samples.begin(), samples.end()}}, to).samples;
}

}  // namespace moka::io
