// SPDX-License-Identifier: Apache-2.0
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "files/error.h"
#include "files/file.h"
#include "moka/files.h"

namespace moka {
namespace files {
namespace {

constexpr size_t kBlock = 1 << 16;  // samples per read, so that the size in a damaged header is never allocated

/// A file in memory in the form that libsndfile reads and writes.
struct Memory {
  const std::byte* from = nullptr;
  Buffer* to = nullptr;
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

}  // namespace files

bool is_sound(std::string_view extension) {
  constexpr std::string_view kKnown[] = {"wav", "flac", "ogg", "oga", "opus", "mp3", "aif", "aiff", "au", "caf", "w64"};
  return std::find(std::begin(kKnown), std::end(kKnown), extension) != std::end(kKnown);
}

Sound decode_sound(std::span<const std::byte> bytes, std::string_view name) {
  using namespace files;
  Memory m{bytes.data(), nullptr, bytes.size()};
  SF_INFO info{};
  const File file(sf_open_virtual(&kMemory, SFM_READ, &info, &m));
  if (!file) damaged(name, "cannot be read as sound: ", sf_strerror(nullptr));
  Sound sound{static_cast<uint32_t>(info.samplerate), static_cast<uint32_t>(info.channels), {}};
  const size_t block = kBlock / sound.channels * sound.channels;
  for (size_t have = 0;;) {
    sound.samples.resize(have + block);
    const sf_count_t got = sf_read_float(file.get(), sound.samples.data() + have, static_cast<sf_count_t>(block));
    have += static_cast<size_t>(std::max<sf_count_t>(got, 0));
    if (got == static_cast<sf_count_t>(block)) continue;
    sound.samples.resize(have / sound.channels * sound.channels);
    return sound;
  }
}

Sound read_sound(const std::filesystem::path& path) { return decode_sound(files::read_file(path), path.string()); }

std::vector<std::byte> encode_wav(const Sound& sound) {
  using namespace files;
  if (sound.channels == 0 || sound.channels > 1024 || sound.samples.size() % sound.channels) {
    refuse(ErrorKind::invalid_argument, "wav: expected whole frames of 1 to 1024 channels, got ", sound.samples.size(),
           " samples of ", sound.channels, " channels");
  }
  if (sound.samples.size() > 0x7fffff00u)
    refuse(ErrorKind::invalid_argument, "wav: expected less than 4 GiB of samples, got more");
  std::vector<int16_t> samples(sound.samples.size());
  std::transform(sound.samples.begin(), sound.samples.end(), samples.begin(), [](float v) {
    return std::isnan(v) ? int16_t{0} : static_cast<int16_t>(std::lrint(std::clamp(v * 32768.0, -32768.0, 32767.0)));
  });
  Buffer out;
  Memory m{nullptr, &out};
  SF_INFO info{};
  info.samplerate = static_cast<int>(sound.sample_rate);
  info.channels = static_cast<int>(sound.channels);
  info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  File file(sf_open_virtual(&kMemory, SFM_WRITE, &info, &m));
  if (!file) refuse(ErrorKind::invalid_argument, "wav: cannot be written: ", sf_strerror(nullptr));
  const auto count = static_cast<sf_count_t>(samples.size());
  if (sf_write_short(file.get(), samples.data(), count) != count)
    refuse(ErrorKind::invalid_argument, "wav: cannot be written: ", sf_strerror(file.get()));
  file.reset();  // completes the header
  return out;
}

Sound mono(const Sound& sound) {
  if (sound.channels == 1) return sound;
  Sound mixed{sound.sample_rate, 1, std::vector<float>(sound.frames())};
  for (size_t i = 0; i < mixed.samples.size(); ++i) {
    double sum = 0;
    for (uint32_t c = 0; c < sound.channels; ++c) sum += sound.samples[i * sound.channels + c];
    mixed.samples[i] = static_cast<float>(sum / sound.channels);
  }
  return mixed;
}

}  // namespace moka
