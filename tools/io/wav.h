#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace moka::io {

/// Sound as interleaved samples, full scale is [-1, 1].
struct Audio {
  uint32_t sample_rate = 0;  // hertz
  uint32_t channels = 1;
  std::vector<float> samples;

  size_t frames() const { return channels ? samples.size() / channels : 0; }
};

/// RIFF WAVE: PCM of 8, 16, 24 or 32 bits, float of 32 or 64, plain or extensible. An integer sample is divided by
/// 2^(bits-1). A data chunk longer than the file (as streaming writers leave it) ends with the file.
Audio parse_wav(std::span<const std::byte> bytes, std::string_view name);
Audio read_wav(const std::filesystem::path& path);

/// 16-bit PCM; samples outside [-1, 1] are clipped.
Bytes encode_wav(const Audio& audio);
void write_wav(const std::filesystem::path& path, const Audio& audio);

/// The mean of the channels.
Audio mix_to_mono(const Audio& audio);

/// One channel from one rate to another by a Kaiser-windowed sinc of 93 zero crossings a side: a passband flat to
/// 0.91 of the lower Nyquist frequency, more than 120 dB down from the Nyquist frequency on, no delay. The result has
/// ceil(n * to / from) samples. Rates are 1 Hz to 10 MHz, less than a factor of 1000 apart.
std::vector<float> resample(std::span<const float> samples, uint32_t from, uint32_t to);
/// Every channel.
Audio resample(const Audio& audio, uint32_t to);

}  // namespace moka::io
