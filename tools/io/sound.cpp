// SPDX-License-Identifier: Apache-2.0
#include "io/sound.h"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "io/io_error.h"

namespace moka::io {
namespace {

constexpr size_t kBlock = 1 << 16;  // samples per read, so that the size in a damaged header is never allocated

/// A file in memory in the form that libsndfile reads and writes.
struct Memory {
  const std::byte* from = nullptr;
  Bytes* to = nullptr;
  size_t size = 0, at = 0;
};

Memory& memory(void* user) { return *static_cast<Memory*>(user); }

sf_count_t seek(sf_count_t offset, int whence, void* user) {
  Memory& m = memory(user);
  const sf_count_t base = whence == SEEK_SET ? 0 : static_cast<sf_count_t>(whence == SEEK_CUR ? m.at : m.size);
  if (offset < -base) return -1;
  m.at = static_cast<size_t>(base + offset);
  return static_cast<sf_count_t>(m.at);
}

sf_count_t read(void* to, sf_count_t count, void* user) {
  Memory& m = memory(user);
  if (count <= 0 || m.at >= m.size) return 0;
  const size_t n = std::min(static_cast<size_t>(count), m.size - m.at);
  std::memcpy(to, m.from + m.at, n);
  m.at += n;
  return static_cast<sf_count_t>(n);
}

sf_count_t write(const void* from, sf_count_t count, void* user) {
  Memory& m = memory(user);
  const auto n = static_cast<size_t>(std::max<sf_count_t>(count, 0));
  m.size = std::max(m.size, m.at + n);
  m.to->resize(m.size);
  if (n > 0) std::memcpy(m.to->data() + m.at, from, n);
  m.at += n;
  return count;
}

SF_VIRTUAL_IO kMemory{[](void* user) { return static_cast<sf_count_t>(memory(user).size); }, seek, read, write,
                      [](void* user) { return static_cast<sf_count_t>(memory(user).at); }};

struct Close {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using File = std::unique_ptr<SNDFILE, Close>;

}  // namespace

bool is_sound(std::string_view extension) {
  constexpr std::string_view kKnown[] = {"wav", "flac", "ogg", "oga", "opus", "mp3", "aif", "aiff", "au", "caf", "w64"};
  return std::find(std::begin(kKnown), std::end(kKnown), extension) != std::end(kKnown);
}

Audio parse_sound(std::span<const std::byte> bytes, std::string_view name) {
  Memory m{bytes.data(), nullptr, bytes.size()};
  SF_INFO info{};
  const File file(sf_open_virtual(&kMemory, SFM_READ, &info, &m));
  if (!file) fail(name, "cannot be read as sound: ", sf_strerror(nullptr));
  Audio audio{static_cast<uint32_t>(info.samplerate), static_cast<uint32_t>(info.channels), {}};
  const size_t block = kBlock / audio.channels * audio.channels;
  for (size_t have = 0;;) {
    audio.samples.resize(have + block);
    const sf_count_t got = sf_read_float(file.get(), audio.samples.data() + have, static_cast<sf_count_t>(block));
    have += static_cast<size_t>(std::max<sf_count_t>(got, 0));
    if (got == static_cast<sf_count_t>(block)) continue;
    audio.samples.resize(have / audio.channels * audio.channels);
    return audio;
  }
}

Audio read_sound(const std::filesystem::path& path) { return parse_sound(read_file(path), path.string()); }

Bytes encode_wav(const Audio& audio) {
  if (audio.channels == 0 || audio.channels > 1024 || audio.samples.size() % audio.channels) {
    fail("wav", "expected whole frames of 1 to 1024 channels, got ", audio.samples.size(), " samples of ",
         audio.channels, " channels");
  }
  if (audio.samples.size() > 0x7fffff00u) fail("wav", "expected less than 4 GiB of samples, got more");
  std::vector<int16_t> samples(audio.samples.size());
  std::transform(audio.samples.begin(), audio.samples.end(), samples.begin(), [](float v) {
    return std::isnan(v) ? int16_t{0} : static_cast<int16_t>(std::lrint(std::clamp(v * 32768.0, -32768.0, 32767.0)));
  });
  Bytes out;
  Memory m{nullptr, &out};
  SF_INFO info{};
  info.samplerate = static_cast<int>(audio.sample_rate);
  info.channels = static_cast<int>(audio.channels);
  info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  File file(sf_open_virtual(&kMemory, SFM_WRITE, &info, &m));
  if (!file) fail("wav", "cannot be written: ", sf_strerror(nullptr));
  const auto count = static_cast<sf_count_t>(samples.size());
  if (sf_write_short(file.get(), samples.data(), count) != count)
    fail("wav", "cannot be written: ", sf_strerror(file.get()));
  file.reset();  // completes the header
  return out;
}

void write_wav(const std::filesystem::path& path, const Audio& audio) { write_file(path, encode_wav(audio)); }

Audio mix_to_mono(const Audio& audio) {
  if (audio.channels == 1) return audio;
  Audio mono{audio.sample_rate, 1, std::vector<float>(audio.frames())};
  for (size_t i = 0; i < mono.samples.size(); ++i) {
    double sum = 0;
    for (uint32_t c = 0; c < audio.channels; ++c) sum += audio.samples[i * audio.channels + c];
    mono.samples[i] = static_cast<float>(sum / audio.channels);
  }
  return mono;
}

}  // namespace moka::io
