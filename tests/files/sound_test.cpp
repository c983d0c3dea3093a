// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "files/file.h"
#include "files/files_util.h"

namespace moka::test {
namespace {

using namespace files;

Buffer riff(uint16_t tag, uint16_t channels, uint16_t bits, const Buffer& data, bool extensible = false) {
  Buffer out;
  put_text(out, "RIFF");
  put_number<uint32_t>(out, 0);
  put_text(out, "WAVE");
  put_text(out, "LIST");
  put_number<uint32_t>(out, 3);
  put_text(out, "abc");
  put_number<uint8_t>(out, 0);
  put_text(out, "fmt ");
  put_number<uint32_t>(out, extensible ? 40 : 16);
  put_number<uint16_t>(out, extensible ? 0xfffe : tag);
  put_number(out, channels);
  put_number<uint32_t>(out, 8000);
  put_number<uint32_t>(out, 8000u * channels * bits / 8);
  put_number<uint16_t>(out, static_cast<uint16_t>(channels * bits / 8));
  put_number(out, bits);
  if (extensible) {
    put_number<uint16_t>(out, 22);
    put_number(out, bits);
    put_number<uint32_t>(out, 0);
    put_number(out, tag);
    for (uint8_t v : {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71}) put_number(out, v);  // of the GUID
  }
  put_text(out, "data");
  put_number(out, static_cast<uint32_t>(data.size()));
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

std::vector<float> tone(double frequency, uint32_t rate, size_t count) {
  std::vector<float> result(count);
  for (size_t i = 0; i < count; ++i) {
    result[i] = static_cast<float>(std::sin(2 * std::numbers::pi * frequency * static_cast<double>(i) / rate));
  }
  return result;
}

std::vector<float> resample(std::vector<float> samples, uint32_t from, uint32_t to) {
  return resampled({from, 1, std::move(samples)}, to).samples;
}

double decibels(double power) { return 10 * std::log10(power + 1e-30); }

/// Signal-to-noise ratio against the same tone made at the other rate, away from the ends.
double tone_snr(double frequency, uint32_t from, uint32_t to) {
  const auto got = resample(tone(frequency, from, from), from, to);
  const auto want = tone(frequency, to, got.size());
  double signal = 0, noise = 0;
  for (size_t i = got.size() / 5; i < got.size() * 4 / 5; ++i) {
    signal += want[i] * want[i];
    noise += (got[i] - want[i]) * (got[i] - want[i]);
  }
  return decibels(signal / noise);
}

TEST(Wav, EveryWidth) {
  Buffer data;
  for (int v : {0, 64, 128, 255}) put_number(data, static_cast<uint8_t>(v));
  EXPECT_EQ(decode_sound(riff(1, 1, 8, data), "a").samples, (std::vector<float>{-1, -0.5, 0, 127.0f / 128}));
  data.clear();
  for (int v : {-32768, 16384}) put_number(data, static_cast<uint16_t>(v));
  EXPECT_EQ(decode_sound(riff(1, 1, 16, data), "a").samples, (std::vector<float>{-1, 0.5}));
  data.clear();
  for (uint8_t v : {0x00, 0x00, 0x80, 0x00, 0x00, 0x20}) put_number(data, v);
  EXPECT_EQ(decode_sound(riff(1, 1, 24, data), "a").samples, (std::vector<float>{-1, 0.25}));
  EXPECT_EQ(decode_sound(riff(1, 1, 24, data, true), "a").samples, (std::vector<float>{-1, 0.25}));
  data.clear();
  for (uint32_t v : {0x80000000u, 0x40000000u}) put_number(data, v);
  EXPECT_EQ(decode_sound(riff(1, 1, 32, data), "a").samples, (std::vector<float>{-1, 0.5}));
  data.clear();
  for (float v : {0.3f, -1.5f}) put_number(data, std::bit_cast<uint32_t>(v));
  EXPECT_EQ(decode_sound(riff(3, 2, 32, data), "a").samples, (std::vector<float>{0.3f, -1.5f}));
  data.clear();
  put_number(data, std::bit_cast<uint64_t>(0.75));
  EXPECT_EQ(decode_sound(riff(3, 1, 64, data, true), "a").samples, std::vector<float>{0.75f});
}

TEST(Wav, RoundTripAndMixdown) {
  const Sound audio{44100, 2, {0.5f, -0.5f, 0.25f, 0.75f, -1.0f, 1.0f}};
  const Sound back = decode_sound(encode_wav(audio), "b");
  EXPECT_EQ(back.sample_rate, 44100u);
  EXPECT_EQ(back.channels, 2u);
  ASSERT_EQ(back.samples.size(), audio.samples.size());
  for (size_t i = 0; i < back.samples.size(); ++i) EXPECT_NEAR(back.samples[i], audio.samples[i], 1.0 / 32768);
  EXPECT_EQ(mono(audio).samples, (std::vector<float>{0, 0.5f, 0}));
}

TEST(Wav, AStreamedFileEndsWithTheFile) {
  Buffer bytes = riff(1, 1, 16, Buffer(10));
  const size_t size_at = bytes.size() - 14;
  for (size_t i = 0; i < 4; ++i) bytes[size_at + i] = std::byte{0xff};
  EXPECT_EQ(decode_sound(bytes, "c").samples.size(), 5u);
}

TEST(Wav, WrongFilesAreErrors) {
  EXPECT_THROW(decode_sound(riff(1, 1, 40, {}), "d"), Exception);
  EXPECT_THROW(decode_sound(riff(2, 1, 16, {}), "d"), Exception);
  EXPECT_THROW(decode_sound(riff(1, 0, 16, {}), "d"), Exception);
  Buffer no_data = riff(1, 1, 16, {});
  no_data.resize(no_data.size() - 8);
  EXPECT_THROW(decode_sound(no_data, "d"), Exception);
}

TEST(Sound, OtherFormatsAreReadToo) {
  Buffer au;
  put_text(au, ".snd");
  for (uint8_t v : {0, 0, 0, 24, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0x1f, 0x40, 0, 0, 0, 2, 0x40, 0, 0x80, 0})
    put_number(au, v);
  const Sound audio = decode_sound(au, "e");
  EXPECT_EQ(audio.sample_rate, 8000u);
  EXPECT_EQ(audio.channels, 2u);
  EXPECT_EQ(audio.samples, (std::vector<float>{0.5f, -1.0f}));
  EXPECT_TRUE(is_sound("flac") && is_sound("wav") && !is_sound("npy"));
}

TEST(Resample, TonesInThePassbandSurviveUnchanged) {
  EXPECT_GT(tone_snr(997, 44100, 22050), 120);
  EXPECT_GT(tone_snr(9900, 44100, 22050), 110);  // 0.898 of the new Nyquist frequency
  EXPECT_GT(tone_snr(997, 48000, 22050), 120);
  EXPECT_GT(tone_snr(997, 16000, 44100), 120);
  EXPECT_GT(tone_snr(997, 44100, 44101), 120);  // more phases than are kept
}

TEST(Resample, WhatWouldAliasIsGone) {
  const auto got = resample(tone(11100, 44100, 44100), 44100, 22050);
  double power = 0;
  for (size_t i = 2000; i < got.size() - 2000; ++i) power += got[i] * got[i];
  EXPECT_LT(decibels(power / static_cast<double>(got.size()) / 0.5), -115);
}

TEST(Resample, LengthAndLimits) {
  EXPECT_EQ(resample(std::vector<float>(7), 2, 1).size(), 4u);
  EXPECT_EQ(resample(std::vector<float>(7), 3, 2).size(), 5u);
  EXPECT_TRUE(resample(std::vector<float>(), 44100, 22050).empty());
  EXPECT_THROW(resample(std::vector<float>(7), 0, 1), Exception);
  EXPECT_THROW(resample(std::vector<float>(7), 1, 9999999), Exception);
  EXPECT_THROW(resample(std::vector<float>(7), 4000000000u, 1), Exception);
}

TEST(Resample, ChannelsStayApart) {
  Sound audio{8000, 2, {}};
  const auto left = tone(300, 8000, 500), right = tone(900, 8000, 500);
  for (size_t i = 0; i < 500; ++i) audio.samples.insert(audio.samples.end(), {left[i], right[i]});
  const Sound got = resampled(audio, 12000);
  const auto alone = resample(right, 8000, 12000);
  ASSERT_EQ(got.frames(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(got.samples[i * 2 + 1], alone[i]);
}

}  // namespace
}  // namespace moka::test
