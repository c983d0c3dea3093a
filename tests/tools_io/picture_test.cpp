// SPDX-License-Identifier: Apache-2.0
#include "io/picture.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "io/io_error.h"
#include "io/picture_formats.h"
#include "samples.h"

namespace moka::io {
namespace {

using Pixels = std::vector<uint8_t>;

Picture sample_picture(std::string_view hex) { return parse_picture(samples::bytes(hex), "sample"); }

const Pixels kSix = {255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 10, 20, 30, 255, 40, 50, 60, 255, 70, 80, 90, 255};

TEST(Picture, PngOfEveryKind) {
  const Picture rgb = sample_picture(samples::kPngRgb);
  EXPECT_EQ(rgb.width, 3u);
  EXPECT_EQ(rgb.height, 2u);
  EXPECT_EQ(rgb.channels, 4u);
  EXPECT_EQ(rgb.pixels, kSix);
  EXPECT_EQ(sample_picture(samples::kPngPal).pixels, kSix);
  const Picture gray = sample_picture(samples::kPngGray16);
  EXPECT_EQ(gray.channels, 1u);
  EXPECT_EQ(gray.pixels, (Pixels{0, 128, 255}));
  EXPECT_EQ(sample_picture(samples::kPng1bit).pixels, (Pixels{0, 255, 255, 0, 255, 0, 0, 0, 255}));
  EXPECT_EQ(sample_picture(samples::kPngLa).pixels, (Pixels{10, 10, 10, 255, 200, 200, 200, 128}));
}

TEST(Picture, WebPLossless) { EXPECT_EQ(sample_picture(samples::kWebp).pixels, kSix); }

TEST(Picture, JpegInColor) {
  const Picture picture = sample_picture(samples::kJpg);
  ASSERT_EQ(picture.pixels.size(), 16u * 8 * 4);
  for (size_t i = 0; i < picture.pixels.size(); i += 4) {
    EXPECT_LE(std::abs(picture.pixels[i] - 200), 2);
    EXPECT_LE(std::abs(picture.pixels[i + 1] - 100), 2);
    EXPECT_LE(std::abs(picture.pixels[i + 2] - 50), 2);
    EXPECT_EQ(picture.pixels[i + 3], 255);
  }
}

TEST(Picture, JpegIsTurnedUpright) {
  // Orientation 6: the left side of what is stored is the top of what is shown.
  const Picture picture = sample_picture(samples::kJpgGrayExif6);
  EXPECT_EQ(picture.width, 8u);
  EXPECT_EQ(picture.height, 16u);
  EXPECT_EQ(picture.channels, 1u);
  EXPECT_GT(*picture.at(4, 2), 250);
  EXPECT_LT(*picture.at(4, 13), 5);
}

TEST(Picture, EveryOrientationAsPillowTurnsIt) {
  const Picture stored{3, 2, 1, {1, 2, 3, 4, 5, 6}};
  const Pixels want[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
                         {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Picture shown = formats::upright(stored, orientation);
    EXPECT_EQ(shown.pixels, want[orientation - 1]) << orientation;
    EXPECT_EQ(shown.width, orientation < 5 ? 3u : 2u) << orientation;
  }
}

TEST(Picture, JpegOfInks) {
  const Picture picture = sample_picture(samples::kJpgCmyk);
  EXPECT_EQ((Pixels{picture.pixels.begin(), picture.pixels.begin() + 4}), (Pixels{255, 0, 0, 255}));
}

TEST(Picture, PngRoundTrip) {
  for (size_t channels : {1, 3, 4}) {
    Picture picture{5, 3, channels, {}};
    for (size_t i = 0; i < 15 * channels; ++i) picture.pixels.push_back(static_cast<uint8_t>(i * 53 + 7));
    const Picture back = parse_picture(encode_png(picture), "round trip");
    EXPECT_EQ(back.width, 5u);
    EXPECT_EQ(back.height, 3u);
    EXPECT_EQ(channels == 3 ? with_channels(back, 3).pixels : back.pixels, picture.pixels);
  }
}

TEST(Picture, ChannelsConvert) {
  const Picture picture{1, 1, 4, {200, 100, 50, 128}};
  EXPECT_EQ(with_channels(picture, 3).pixels, (Pixels{100, 50, 25}));
  EXPECT_EQ(with_channels(Picture{1, 1, 3, {200, 100, 50}}, 1).pixels, Pixels{124});  // 0.299 R + 0.587 G + 0.114 B
  EXPECT_EQ(with_channels(Picture{1, 1, 1, {9}}, 4).pixels, (Pixels{9, 9, 9, 255}));
}

TEST(Picture, LimitsAndDamageAreErrors) {
  EXPECT_THROW(parse_picture(samples::bytes(samples::kPngRgb), "big", 5), IoError);
  EXPECT_THROW(parse_picture(samples::bytes(samples::kJpg), "big", 5), IoError);
  EXPECT_THROW(parse_picture(samples::bytes(samples::kWebp), "big", 5), IoError);
  auto half = samples::bytes(samples::kJpg);
  half.resize(half.size() - 12);
  EXPECT_THROW(parse_picture(half, "half"), IoError);
  EXPECT_THROW(parse_picture(samples::bytes(samples::kF4C), "array"), IoError);
  EXPECT_THROW(encode_png(Picture{2, 2, 3, {1, 2, 3}}), IoError);
  EXPECT_THROW(encode_png(Picture{}), IoError);
}

}  // namespace
}  // namespace moka::io
