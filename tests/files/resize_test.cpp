// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "files/files_util.h"
#include "files/placement.h"

namespace moka::test {
namespace {

using files::place;
using files::Placement;

Image ramp() {
  Pixels pixels;
  for (int i = 0; i < 35; ++i) pixels.push_back(static_cast<uint8_t>(i * 37 % 256));
  return image_of(7, 5, PixelFormat::gray8, pixels);
}

// Expected values: Pillow 12, float images, rounded once at the end.
void expect_pixels(const Image& image, const std::vector<int>& want) {
  const Pixels got = pixels_of(image);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i], want[i]) << "pixel " << i;
}

TEST(Resize, TriangleTo3x2AsPillow) { expect_pixels(fit_image(ramp(), 3, 2), {35, 114, 193, 41, 120, 199}); }

TEST(Resize, TriangleTo10x8AsPillow) {
  expect_pixels(fit_image(ramp(), 10, 8),
                {0,  20, 46, 72, 98,  124, 150, 176, 202, 222, 1,  22, 48, 73, 99,  125, 151, 177, 203, 223,
                 3,  24, 49, 75, 101, 127, 153, 179, 205, 225, 5,  25, 51, 77, 103, 129, 155, 181, 207, 227,
                 7,  27, 53, 79, 105, 131, 157, 183, 209, 229, 9,  29, 55, 81, 107, 133, 159, 185, 210, 231,
                 11, 31, 57, 83, 109, 135, 161, 186, 212, 233, 12, 32, 58, 84, 110, 136, 162, 188, 214, 234});
}

TEST(Resize, CenterCropAsPillowWithABox) {
  expect_pixels(fit_image(ramp(), 4, 4, ImageFit::center_crop),
                {43, 90, 133, 180, 47, 94, 137, 184, 50, 97, 140, 187, 54, 101, 144, 191});
}

TEST(Resize, TransparentPixelsDontBleed) {
  const Image image = image_of(2, 1, PixelFormat::rgba8, {255, 0, 0, 255, 0, 255, 0, 0});
  EXPECT_EQ(pixels_of(fit_image(image, 1, 1)), (Pixels{255, 0, 0, 128}));
}

TEST(Fit, Geometry) {
  const Placement fill = place(640, 480, 300, 200, ImageFit::scale_fill);
  EXPECT_EQ(fill.source_width, 640);
  EXPECT_EQ(fill.source_height, 480);
  EXPECT_EQ(fill.width, 300);
  EXPECT_EQ(fill.height, 200);

  const Placement inside = place(640, 480, 416, 416, ImageFit::scale_fit);
  EXPECT_EQ(inside.width, 416);
  EXPECT_EQ(inside.height, 312);
  EXPECT_EQ(inside.x, 0);
  EXPECT_EQ(inside.y, 52);
  EXPECT_EQ(inside.source_height, 480);

  const Placement cropped = place(640, 480, 224, 224, ImageFit::center_crop);
  EXPECT_EQ(cropped.source_x, 80);
  EXPECT_EQ(cropped.source_y, 0);
  EXPECT_EQ(cropped.source_width, 480);
  EXPECT_EQ(cropped.source_height, 480);
  EXPECT_EQ(cropped.width, 224);

  EXPECT_EQ(place(10000, 1, 8, 8, ImageFit::scale_fit).height, 1);
  EXPECT_THROW(place(0, 5, 8, 8, ImageFit::scale_fit), Exception);
  EXPECT_THROW(place(5, 5, 8, 0, ImageFit::center_crop), Exception);
}

TEST(Fit, LetterboxIsBlackAndOpaque) {
  const Image got = fit_image(image_of(4, 2, PixelFormat::rgba8, Pixels(32, 255)), 4, 4, ImageFit::scale_fit);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(pixels_of(got)[4 * i], i < 4 || i >= 12 ? 0 : 255);
    EXPECT_EQ(pixels_of(got)[4 * i + 3], 255);
  }
}

TEST(Fit, RegionsAsPillowWithABox) {
  const ImageRegion region{0.2, 0.1, 0.7, 0.8};  // (1.4, 0.5) to (6.3, 4.5)
  expect_pixels(fit_image(ramp(), 4, 3, ImageFit::scale_fill, region),
                {58, 100, 148, 196, 62, 105, 152, 200, 66, 109, 157, 205});
  expect_pixels(fit_image(ramp(), 2, 2, ImageFit::center_crop, region), {90, 164, 96, 170});
}

TEST(Fit, WholePixelsOfARegionAreCopied) {
  expect_pixels(fit_image(ramp(), 2, 3, ImageFit::scale_fill, {3.0 / 7, 0.2, 2.0 / 7, 0.6}),
                {10 * 37 % 256, 11 * 37 % 256, 17 * 37 % 256, 18 * 37 % 256, 24 * 37 % 256, 25 * 37 % 256});
  // The same size as the image's, but another part.
  EXPECT_NE(pixels_of(fit_image(ramp(), 7, 5, ImageFit::scale_fill, {0.5, 0.5, 0.5, 0.5})), pixels_of(ramp()));
}

TEST(Fit, RegionsOutsideTheImageAreErrors) {
  for (const ImageRegion& region : {ImageRegion{-0.1, 0, 0.5, 0.5},
                                    {0, 0, 1.1, 1},
                                    {0.6, 0, 0.5, 1},
                                    {0, 0, 0, 1},
                                    {0, 0, std::nan(""), 1},
                                    {0, 0.9, 1, 0.2}})
    EXPECT_EQ(failure_of([&] { fit_image(ramp(), 3, 3, ImageFit::scale_fill, region); }).first,
              ErrorKind::invalid_argument)
        << region.x << " " << region.width;
  EXPECT_EQ(failure_of([] {
              fit_image(ramp(), 3, 3, ImageFit::scale_fill, {0.6, 0, 0.5, 1});
            }).second,
            "region: expected a part of the image in fractions from 0 to 1, got (0.6, 0) with 0.5 x 1");
  EXPECT_EQ(failure_of([] { fit_image(ramp(), 0, 3); }).first, ErrorKind::invalid_argument);
  EXPECT_EQ(failure_of([] { fit_image(ramp(), 70000, 3); }).first, ErrorKind::invalid_argument);
  EXPECT_EQ(failure_of([] { fit_image({}, 3, 3); }).first, ErrorKind::invalid_argument);
}

TEST(Fit, FloatsAreNotRounded) {
  Image floats(7, 5, PixelFormat::gray_float32);
  auto* values = reinterpret_cast<float*>(floats.pixels.get());
  for (int i = 0; i < 35; ++i) values[i] = static_cast<float>(i * 37 % 256) - 100.25F;
  const Image got = fit_image(floats, 3, 2);
  const auto* numbers = reinterpret_cast<const float*>(got.pixels.get());
  const double want[] = {-65.53571319580078, 13.75, 93.03571319580078, -59.53571319580078, 19.75, 99.03571319580078};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(numbers[i], want[i], 1e-4) << i;  // Pillow 12
}

TEST(Fit, NothingIsCopiedWhenNothingChanges) {
  const Image image = ramp();
  EXPECT_EQ(fit_image(image, 7, 5, ImageFit::scale_fit).pixels, image.pixels);
}

TEST(Fit, Names) {
  for (const ImageFit fit : {ImageFit::scale_fill, ImageFit::scale_fit, ImageFit::center_crop})
    EXPECT_EQ(image_fit(to_string(fit)), fit);
  EXPECT_EQ(to_string(ImageFit::center_crop), "centerCrop");
  EXPECT_EQ(failure_of([] { image_fit("stretch"); }).second,
            "fit: expected scaleFill, scaleFit or centerCrop, got 'stretch'");
}

}  // namespace
}  // namespace moka::test
