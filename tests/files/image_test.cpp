// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "files/files_util.h"
#include "files/image_formats.h"
#include "files/samples.h"

namespace moka::test {
namespace {

Image sample_image(std::string_view hex) { return decode_image(samples::bytes(hex), "sample"); }
Pixels sample_pixels(std::string_view hex) { return pixels_of(sample_image(hex)); }

const Pixels kSix = {255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 10, 20, 30, 255, 40, 50, 60, 255, 70, 80, 90, 255};

TEST(Picture, PngOfEveryKind) {
  const Image rgb = sample_image(samples::kPngRgb);
  EXPECT_EQ(rgb.width, 3);
  EXPECT_EQ(rgb.height, 2);
  EXPECT_EQ(rgb.format, PixelFormat::rgba8);
  EXPECT_EQ(pixels_of(rgb), kSix);
  EXPECT_EQ(sample_pixels(samples::kPngPal), kSix);
  const Image gray = sample_image(samples::kPngGray16);
  EXPECT_EQ(gray.format, PixelFormat::gray8);
  EXPECT_EQ(pixels_of(gray), (Pixels{0, 128, 255}));
  EXPECT_EQ(sample_pixels(samples::kPng1bit), (Pixels{0, 255, 255, 0, 255, 0, 0, 0, 255}));
  EXPECT_EQ(sample_pixels(samples::kPngLa), (Pixels{10, 10, 10, 255, 200, 200, 200, 128}));
}

TEST(Picture, WebPLossless) { EXPECT_EQ(sample_pixels(samples::kWebp), kSix); }

TEST(Picture, JpegInColor) {
  const Pixels pixels = sample_pixels(samples::kJpg);
  ASSERT_EQ(pixels.size(), 16u * 8 * 4);
  for (size_t i = 0; i < pixels.size(); i += 4) {
    EXPECT_LE(std::abs(pixels[i] - 200), 2);
    EXPECT_LE(std::abs(pixels[i + 1] - 100), 2);
    EXPECT_LE(std::abs(pixels[i + 2] - 50), 2);
    EXPECT_EQ(pixels[i + 3], 255);
  }
}

TEST(Picture, JpegIsTurnedUpright) {
  // Orientation 6: the left side of what is stored is the top of what is shown.
  const Image image = sample_image(samples::kJpgGrayExif6);
  EXPECT_EQ(image.width, 8);
  EXPECT_EQ(image.height, 16);
  EXPECT_EQ(image.format, PixelFormat::gray8);
  EXPECT_GT(pixels_of(image)[2 * 8 + 4], 250);
  EXPECT_LT(pixels_of(image)[13 * 8 + 4], 5);
}

TEST(Picture, EveryOrientationAsPillowTurnsIt) {
  const Image stored = image_of(3, 2, PixelFormat::gray8, {1, 2, 3, 4, 5, 6});
  const Pixels want[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
                         {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image shown = files::upright(stored, orientation);
    EXPECT_EQ(pixels_of(shown), want[orientation - 1]) << orientation;
    EXPECT_EQ(shown.width, orientation < 5 ? 3 : 2) << orientation;
  }
}

TEST(Picture, JpegOfInks) {
  const Pixels pixels = sample_pixels(samples::kJpgCmyk);
  EXPECT_EQ((Pixels{pixels.begin(), pixels.begin() + 4}), (Pixels{255, 0, 0, 255}));
}

TEST(Picture, PngRoundTrip) {
  for (const PixelFormat format : {PixelFormat::gray8, PixelFormat::rgb8, PixelFormat::rgba8}) {
    Pixels pixels;
    for (size_t i = 0; i < 15 * bytes_per_pixel(format); ++i) pixels.push_back(static_cast<uint8_t>(i * 53 + 7));
    const Image back = decode_image(encode_png(image_of(5, 3, format, pixels)), "round trip");
    EXPECT_EQ(back.width, 5);
    EXPECT_EQ(back.height, 3);
    EXPECT_EQ(pixels_of(converted(back, format)), pixels);
  }
}

TEST(Picture, PngKeepsTheOrderOfColorsAndDropsAlphaOfOpaqueImages) {
  const Image image = image_of(1, 1, PixelFormat::bgra8, {1, 2, 3, 255});
  const auto png = encode_png(image);
  EXPECT_EQ(pixels_of(decode_image(png)), (Pixels{3, 2, 1, 255}));
  EXPECT_EQ(png.at(25), std::byte{2});  // the color type of IHDR: RGB
  EXPECT_EQ(encode_png(image_of(1, 1, PixelFormat::rgba8, {3, 2, 1, 254})).at(25), std::byte{6});
}

TEST(Picture, RowsMayHaveGaps) {
  Pixels wide{1, 2, 99, 3, 4, 99};
  const Image image(wide.data(), 2, 2, PixelFormat::gray8, 3);
  EXPECT_EQ(pixels_of(decode_image(encode_png(image))), (Pixels{1, 2, 3, 4}));
  EXPECT_EQ(pixels_of(converted(image, PixelFormat::rgb8)), (Pixels{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}));
  EXPECT_EQ(pixels_of(fit_image(image, 1, 2)), (Pixels{2, 4}));
}

TEST(Picture, FormatsConvert) {
  const Image image = image_of(1, 1, PixelFormat::rgba8, {200, 100, 50, 128});
  EXPECT_EQ(pixels_of(converted(image, PixelFormat::rgb8)), (Pixels{100, 50, 25}));
  EXPECT_EQ(pixels_of(converted(image, PixelFormat::bgra8)), (Pixels{50, 100, 200, 128}));
  const Image rgb = image_of(1, 1, PixelFormat::rgb8, {200, 100, 50});
  EXPECT_EQ(pixels_of(converted(rgb, PixelFormat::gray8)), Pixels{124});  // 0.299 R + 0.587 G + 0.114 B
  const Image gray = image_of(1, 1, PixelFormat::gray8, {9});
  EXPECT_EQ(pixels_of(converted(gray, PixelFormat::rgba8)), (Pixels{9, 9, 9, 255}));
  const Image floats = converted(gray, PixelFormat::gray_float32);
  EXPECT_EQ(*reinterpret_cast<const float*>(floats.pixels.get()), 9.0F);
  EXPECT_EQ(pixels_of(converted(floats, PixelFormat::gray8)), Pixels{9});
  EXPECT_EQ(converted(gray, PixelFormat::gray8).pixels, gray.pixels);
  EXPECT_EQ(failure_of([] { converted({}, PixelFormat::gray8); }).first, ErrorKind::invalid_argument);
}

TEST(Picture, LimitsAndDamageAreErrors) {
  for (auto hex : {samples::kPngRgb, samples::kJpg, samples::kWebp})
    EXPECT_EQ(failure_of([&] { decode_image(samples::bytes(hex), "big", 5); }).first, ErrorKind::out_of_budget);
  EXPECT_EQ(failure_of([&] { decode_image(samples::bytes(samples::kPngRgb), "big", 5); }).second,
            "big: expected at most 5 pixels, got 3 x 2");
  auto half = samples::bytes(samples::kJpg);
  half.resize(half.size() - 12);
  EXPECT_EQ(failure_of([&] { decode_image(half, "half"); }).first, ErrorKind::malformed);
  half = samples::bytes(samples::kPngRgb);
  half.resize(half.size() - 20);
  EXPECT_EQ(failure_of([&] { decode_image(half, "half"); }),
            std::pair(ErrorKind::malformed, std::string("half: damaged PNG: the file ends early")));
  EXPECT_EQ(failure_of([&] { decode_image(samples::bytes(samples::kF4C), "array"); }),
            std::pair(ErrorKind::malformed, std::string("array: expected a PNG, JPEG or WebP picture, got neither")));
  EXPECT_EQ(failure_of([&] { encode_png({}); }).first, ErrorKind::invalid_argument);
  EXPECT_EQ(failure_of([&] { encode_png(Image(1, 1, PixelFormat::gray_float32)); }).first, ErrorKind::invalid_argument);
}

TEST(Picture, FilesThatCannotBeRead) {
  EXPECT_EQ(failure_of([] { read_image("no/such/file.png"); }),
            std::pair(ErrorKind::not_found, std::string("no/such/file.png: no such file")));
  EXPECT_EQ(failure_of([] { read_image("."); }).first, ErrorKind::io);
}

}  // namespace
}  // namespace moka::test
