// SPDX-License-Identifier: Apache-2.0
#include "io/resize.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "io/io_error.h"

namespace moka::io {
namespace {

Picture ramp() {
  Picture picture{7, 5, 1, {}};
  for (int i = 0; i < 35; ++i) picture.pixels.push_back(static_cast<uint8_t>(i * 37 % 256));
  return picture;
}

// Expected values: Pillow 12, float images, rounded once at the end.
void expect_pixels(const Picture& got, const std::vector<int>& want) {
  ASSERT_EQ(got.pixels.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got.pixels[i], want[i]) << "pixel " << i;
}

TEST(Resize, TriangleTo3x2AsPillow) {
  expect_pixels(resize(ramp(), 3, 2, Filter::triangle), {35, 114, 193, 41, 120, 199});
}

TEST(Resize, TriangleTo10x8AsPillow) {
  expect_pixels(resize(ramp(), 10, 8, Filter::triangle),
                {0,  20, 46, 72, 98,  124, 150, 176, 202, 222, 1,  22, 48, 73, 99,  125, 151, 177, 203, 223,
                 3,  24, 49, 75, 101, 127, 153, 179, 205, 225, 5,  25, 51, 77, 103, 129, 155, 181, 207, 227,
                 7,  27, 53, 79, 105, 131, 157, 183, 209, 229, 9,  29, 55, 81, 107, 133, 159, 185, 210, 231,
                 11, 31, 57, 83, 109, 135, 161, 186, 212, 233, 12, 32, 58, 84, 110, 136, 162, 188, 214, 234});
}

TEST(Resize, Lanczos3To3x2AsPillow) {
  expect_pixels(resize(ramp(), 3, 2, Filter::lanczos3), {26, 113, 200, 34, 121, 208});
}

TEST(Resize, Lanczos3To10x8AsPillow) {
  expect_pixels(resize(ramp(), 10, 8, Filter::lanczos3),
                {0, 16, 48, 72, 98,  123, 149, 174, 206, 224, 0,  17, 49, 73, 100, 124, 150, 175, 207, 225,
                 1, 19, 51, 76, 102, 127, 153, 177, 209, 227, 3,  21, 53, 78, 104, 129, 155, 179, 211, 229,
                 5, 23, 55, 79, 105, 130, 156, 181, 213, 231, 7,  25, 57, 81, 107, 132, 158, 183, 215, 233,
                 9, 27, 59, 84, 110, 134, 161, 185, 217, 235, 10, 28, 60, 85, 111, 136, 162, 186, 218, 236});
}

TEST(Resize, CenterCropAsPillowWithABox) {
  expect_pixels(fit(ramp(), 4, 4, Fit::center_crop),
                {43, 90, 133, 180, 47, 94, 137, 184, 50, 97, 140, 187, 54, 101, 144, 191});
}

TEST(Resize, TransparentPixelsDontBleed) {
  const Picture picture{2, 1, 4, {255, 0, 0, 255, 0, 255, 0, 0}};
  const Picture got = resize(picture, 1, 1);
  EXPECT_EQ(got.pixels, (std::vector<uint8_t>{255, 0, 0, 128}));
}

TEST(Fit, Geometry) {
  const Placement fill = place(640, 480, 300, 200, Fit::scale_fill);
  EXPECT_EQ(fill.source_width, 640);
  EXPECT_EQ(fill.source_height, 480);
  EXPECT_EQ(fill.width, 300u);
  EXPECT_EQ(fill.height, 200u);

  const Placement inside = place(640, 480, 416, 416, Fit::scale_fit);
  EXPECT_EQ(inside.width, 416u);
  EXPECT_EQ(inside.height, 312u);
  EXPECT_EQ(inside.x, 0u);
  EXPECT_EQ(inside.y, 52u);
  EXPECT_EQ(inside.source_height, 480);

  const Placement cropped = place(640, 480, 224, 224, Fit::center_crop);
  EXPECT_EQ(cropped.source_x, 80);
  EXPECT_EQ(cropped.source_y, 0);
  EXPECT_EQ(cropped.source_width, 480);
  EXPECT_EQ(cropped.source_height, 480);
  EXPECT_EQ(cropped.width, 224u);

  EXPECT_EQ(place(10000, 1, 8, 8, Fit::scale_fit).height, 1u);
  EXPECT_THROW(place(0, 5, 8, 8, Fit::scale_fit), IoError);
  EXPECT_THROW(place(5, 5, 8, 0, Fit::center_crop), IoError);
}

TEST(Fit, LetterboxIsBlackAndOpaque) {
  Picture white{4, 2, 4, std::vector<uint8_t>(32, 255)};
  const Picture got = fit(white, 4, 4, Fit::scale_fit);
  for (size_t x = 0; x < 4; ++x) {
    for (size_t y = 0; y < 4; ++y) {
      EXPECT_EQ(got.at(x, y)[0], y == 0 || y == 3 ? 0 : 255);
      EXPECT_EQ(got.at(x, y)[3], 255);
    }
  }
}

TEST(Fit, Names) {
  EXPECT_EQ(parse_fit("scaleFit"), Fit::scale_fit);
  EXPECT_EQ(parse_fit("scaleFill"), Fit::scale_fill);
  EXPECT_EQ(parse_fit("centerCrop"), Fit::center_crop);
  EXPECT_THROW(parse_fit("stretch"), IoError);
}

}  // namespace
}  // namespace moka::io
