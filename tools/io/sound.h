// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace moka::io {

/// Sound as interleaved samples with a full scale of [-1, 1].
struct Audio {
  uint32_t sample_rate = 0;  // hertz
  uint32_t channels = 1;
  std::vector<float> samples;

  size_t frames() const { return channels ? samples.size() / channels : 0; }
};

/// Whether read_sound() reads files with this extension: "wav", "flac", "ogg", "mp3", ...
bool is_sound(std::string_view extension);

/// Reads any format that libsndfile supports. An integer sample is divided by 2^(bits-1). If the header gives more data
/// than the file has, as streaming writers do, the sound ends with the file.
Audio parse_sound(std::span<const std::byte> bytes, std::string_view name);
Audio read_sound(const std::filesystem::path& path);

/// RIFF WAVE with 16-bit PCM; samples outside [-1, 1] are clipped.
Bytes encode_wav(const Audio& audio);
void write_wav(const std::filesystem::path& path, const Audio& audio);

/// The mean of the channels.
Audio mix_to_mono(const Audio& audio);

/// Resamples every channel with libsoxr's highest quality: no delay, flat to 0.91 of the lower Nyquist frequency. The
/// result has ceil(n * to / from) frames. Rates are 1 Hz to 10 MHz and differ by a factor below 1000.
Audio resample(const Audio& audio, uint32_t to);
/// One channel.
std::vector<float> resample(std::span<const float> samples, uint32_t from, uint32_t to);

}  // namespace moka::io
