#include "io/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "io/io_error.h"

namespace moka::io {
namespace {

constexpr uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

struct Format {
  uint16_t tag = 0, channels = 0, bits = 0, frame_bytes = 0;
  uint32_t rate = 0;
};

Format parse_format(ByteReader in, std::string_view name) {
  Format f;
  f.tag = in.number<uint16_t>("wav format");
  f.channels = in.number<uint16_t>("wav format");
  f.rate = in.number<uint32_t>("wav format");
  in.take(4, "wav format");
  f.frame_bytes = in.number<uint16_t>("wav format");
  f.bits = in.number<uint16_t>("wav format");
  if (f.tag == kExtensible) {
    in.take(8, "wav extensible format");
    f.tag = in.number<uint16_t>("wav extensible format");
  }
  const bool pcm = f.tag == kPcm && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32);
  const bool real = f.tag == kFloat && (f.bits == 32 || f.bits == 64);
  if (!pcm && !real) {
    fail(name, "expected PCM of 8, 16, 24 or 32 bits or float of 32 or 64, got format ", f.tag, " of ", f.bits,
         " bits");
  }
  if (f.channels == 0 || f.rate == 0) {
    fail(name, "expected at least one channel and a sample rate, got ", f.channels, " channels at ", f.rate, " Hz");
  }
  if (f.frame_bytes != static_cast<uint32_t>(f.channels) * f.bits / 8) {
    fail(name, "expected ", f.channels * f.bits / 8, " bytes a frame, got ", f.frame_bytes);
  }
  return f;
}

float sample_at(const std::byte* at, const Format& f) {
  uint64_t raw = 0;
  for (int i = 0; i < f.bits / 8; ++i) raw |= static_cast<uint64_t>(at[i]) << (8 * i);
  if (f.tag == kFloat) {
    return f.bits == 32 ? std::bit_cast<float>(static_cast<uint32_t>(raw))
                        : static_cast<float>(std::bit_cast<double>(raw));
  }
  if (f.bits == 8) return (static_cast<float>(raw) - 128) / 128;
  const auto left = static_cast<int32_t>(static_cast<uint32_t>(raw << (32 - f.bits)));
  return static_cast<float>(left / 2147483648.0);
}

}  // namespace

Audio parse_wav(std::span<const std::byte> bytes, std::string_view name) {
  ByteReader in(bytes, name);
  if (in.take_text(4, "RIFF header") != "RIFF") fail(name, "expected a WAVE file, got no RIFF header");
  in.take(4, "RIFF header");
  if (in.take_text(4, "RIFF header") != "WAVE") fail(name, "expected a RIFF file of kind WAVE, got another kind");
  std::optional<Format> format;
  while (in.remaining() >= 8) {
    const std::string id = in.take_text(4, "chunk");
    const uint32_t size = in.number<uint32_t>("chunk");
    if (id == "data") {
      if (!format) fail(name, "the data chunk comes before any fmt chunk");
      const size_t frames = std::min<size_t>(size, in.remaining()) / format->frame_bytes;
      auto data = in.take(frames * format->frame_bytes, "samples");
      Audio audio{format->rate, format->channels, std::vector<float>(frames * format->channels)};
      const size_t step = format->bits / 8;
      for (size_t i = 0; i < audio.samples.size(); ++i) audio.samples[i] = sample_at(data.data() + i * step, *format);
      return audio;
    }
    auto body = in.take(size, "chunk '" + id + "'");
    if (id == "fmt ") format = parse_format(ByteReader(body, name), name);
    if (size % 2 && in.remaining()) in.take(1, "padding");
  }
  fail(name, "expected a data chunk, found none");
}

Audio read_wav(const std::filesystem::path& path) { return parse_wav(read_file(path), path.string()); }

Bytes encode_wav(const Audio& audio) {
  if (audio.channels == 0 || audio.channels > 0x7fff || audio.samples.size() % audio.channels) {
    fail("wav", "expected whole frames of 1 to 32767 channels, got ", audio.samples.size(), " samples of ",
         audio.channels, " channels");
  }
  if (audio.samples.size() > 0x7fffff00u) fail("wav", "expected less than 4 GiB of samples, got more");
  const auto data_size = static_cast<uint32_t>(audio.samples.size() * 2);
  Bytes out;
  out.reserve(data_size + 44);
  put_text(out, "RIFF");
  put_number<uint32_t>(out, data_size + 36);
  put_text(out, "WAVEfmt ");
  put_number<uint32_t>(out, 16);
  put_number<uint16_t>(out, kPcm);
  put_number(out, static_cast<uint16_t>(audio.channels));
  put_number(out, audio.sample_rate);
  put_number(out, audio.sample_rate * audio.channels * 2);
  put_number(out, static_cast<uint16_t>(audio.channels * 2));
  put_number<uint16_t>(out, 16);
  put_text(out, "data");
  put_number(out, data_size);
  for (float sample : audio.samples) {
    const double scaled = std::isnan(sample) ? 0.0 : std::clamp(sample * 32768.0, -32768.0, 32767.0);
    put_number(out, static_cast<uint16_t>(static_cast<int16_t>(std::lrint(scaled))));
  }
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
