// SPDX-License-Identifier: Apache-2.0
#include <soxr.h>

#include "files/error.h"
#include "moka/files.h"

namespace moka {
namespace {

constexpr uint32_t kHighestRate = 10'000'000;
constexpr uint32_t kLargestRatio = 1000;

}  // namespace

Sound resampled(const Sound& sound, uint32_t to) {
  using files::refuse;
  const uint64_t from = sound.sample_rate;
  if (from == 0 || to == 0 || from > kHighestRate || to > kHighestRate) {
    refuse(ErrorKind::invalid_argument, "resample: expected rates from 1 to ", kHighestRate, " Hz, got ", from, " to ",
           to);
  }
  if (from == to) return sound;
  if (from / to >= kLargestRatio || to / from >= kLargestRatio) {
    refuse(ErrorKind::invalid_argument, "resample: expected rates less than ", kLargestRatio, " times apart, got ",
           from, " to ", to, " Hz");
  }
  const uint64_t frames = sound.frames();
  if (frames > (uint64_t{1} << 32) || frames * to / from > (uint64_t{1} << 32)) {
    refuse(ErrorKind::invalid_argument, "resample: expected a result of at most 2^32 samples, got more");
  }
  Sound result{to, sound.channels, {}};
  const auto length = static_cast<size_t>((frames * to + from - 1) / from);
  result.samples.resize(length * sound.channels);
  if (length == 0) return result;
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  size_t done = 0;
  const soxr_error_t error = soxr_oneshot(static_cast<double>(from), to, sound.channels, sound.samples.data(), frames,
                                          nullptr, result.samples.data(), length, &done, nullptr, &quality, nullptr);
  if (error) refuse(ErrorKind::internal, "resample: ", soxr_strerror(error));
  return result;
}

}  // namespace moka
