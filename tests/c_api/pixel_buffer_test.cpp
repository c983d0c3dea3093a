// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "c_api/files_from_c.h"
#include "c_api/owned.h"
#include "moka/moka_files.h"

namespace moka::test {
namespace {

const std::string kShapesModel = MOKA_TEST_EXAMPLES "/shapes.mlmodel",
                  kSquarePicture = MOKA_TEST_EXAMPLES "/square.png";

/// Luma and chroma of the example's picture, which is gray.
struct SquareFrame {
  std::vector<uint8_t> luma, chroma;
  moka_image gray{};
  Owner<moka_picture> picture;

  SquareFrame() {
    moka_picture *read = nullptr, *made = nullptr;
    moka_image image{};
    EXPECT_EQ(moka_picture_read(kSquarePicture.c_str(), 0, &read), MOKA_OK) << moka_last_error();
    const Owner<moka_picture> whole(read);
    EXPECT_EQ(moka_picture_image(read, &image), MOKA_OK);
    EXPECT_EQ(moka_picture_convert(&image, MOKA_GRAY8, &made), MOKA_OK);
    picture.reset(made);
    EXPECT_EQ(moka_picture_image(made, &gray), MOKA_OK);
    for (int64_t y = 0; y < gray.height; y++) {
      const auto* row = static_cast<const uint8_t*>(gray.pixels) + y * gray.row_bytes;
      luma.insert(luma.end(), row, row + gray.width);
    }
    chroma.assign(static_cast<size_t>((gray.width + 1) / 2 * 2 * ((gray.height + 1) / 2)), 128);
  }
};

TEST(CPixelBuffers, PredictionsFromAFileCompiledAsC) {
  const SquareFrame frame;
  char label[64] = {};
  ASSERT_EQ(classify_frame_from_c(kShapesModel.c_str(), frame.luma.data(), frame.chroma.data(), frame.gray.width,
                                  frame.gray.height, label),
            MOKA_OK)
      << moka_last_error();
  EXPECT_STREQ(label, "square");
}

TEST(CPixelBuffers, ColorsAndSizes) {
  // Green, blue of BT.601 in video range, 2 x 2 pixels each.
  const uint8_t samples[] = {145, 145, 41, 41, 145, 145, 41, 41, 54, 34, 240, 110};
  moka_pixel_buffer frame = MOKA_PIXEL_BUFFER_INIT;
  frame.width = 4;
  frame.height = 2;
  frame.planes[0] = samples;
  frame.contiguous_bytes = sizeof samples;
  EXPECT_EQ(moka_pixel_buffer_bytes(4, 2, MOKA_NV12), sizeof samples);
  EXPECT_EQ(moka_pixel_buffer_bytes(4, 0, MOKA_NV12), 0u);
  moka_picture* made = nullptr;
  moka_image image{};
  ASSERT_EQ(moka_picture_convert_pixel_buffer(&frame, MOKA_RGB8, &made), MOKA_OK) << moka_last_error();
  const Owner<moka_picture> whole(made);
  ASSERT_EQ(moka_picture_image(made, &image), MOKA_OK);
  const auto* rgb = static_cast<const uint8_t*>(image.pixels);
  for (int i = 0; i < 3; i++) EXPECT_NEAR(rgb[i], i == 1 ? 255 : 0, 1);
  for (int i = 9; i < 12; i++) EXPECT_NEAR(rgb[i], i == 11 ? 255 : 0, 1);
  const moka_image_region right{0.5, 0, 0.5, 1};
  frame.region = &right;
  ASSERT_EQ(moka_picture_fit_pixel_buffer(&frame, 2, 2, MOKA_BGRA8, &made), MOKA_OK) << moka_last_error();
  const Owner<moka_picture> part(made);
  ASSERT_EQ(moka_picture_image(made, &image), MOKA_OK);
  const auto* bgra = static_cast<const uint8_t*>(image.pixels);
  EXPECT_NEAR(bgra[0], 255, 1);
  EXPECT_NEAR(bgra[1], 0, 1);
  EXPECT_NEAR(bgra[2], 0, 1);
  EXPECT_EQ(bgra[3], 255);
}

TEST(CPixelBuffers, WrongUse) {
  moka_features* made = nullptr;
  ASSERT_EQ(moka_features_new(&made), MOKA_OK);
  const Owner<moka_features> features(made);
  const uint8_t samples[64] = {};
  const auto refused = [&](const moka_pixel_buffer* frame, const char* message) {
    EXPECT_EQ(moka_features_set_pixel_buffer(features.get(), "image", frame), MOKA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(moka_last_error()).find(message), std::string::npos) << moka_last_error();
  };
  moka_pixel_buffer frame = moka_default_pixel_buffer();
  refused(nullptr, "argument 'buffer'");
  refused(&frame, "expected sizes of 1 to 65536, got 0 x 0");
  frame.width = 4;
  frame.height = 4;
  frame.planes[0] = samples;
  refused(&frame, "pixel buffer (nv12 4 x 4): plane 1 (chroma): expected samples, got none");
  frame.contiguous_bytes = 23;
  refused(&frame, "expected 24 bytes of planes without gaps, got 23");
  frame.planes[1] = samples;
  refused(&frame, "got several planes");
  frame.contiguous_bytes = 0;
  frame.planes[2] = samples;
  refused(&frame, "expected 2 planes, got 3");
  frame.format = MOKA_I420;
  frame.row_bytes[2] = 1;
  refused(&frame, "plane 2 (Cr): expected rows of at least 2 bytes, got 1");
  frame.row_bytes[2] = 2;
  EXPECT_EQ(moka_features_set_pixel_buffer(features.get(), "image", &frame), MOKA_OK) << moka_last_error();
  EXPECT_EQ(moka_features_type(features.get(), "image"), MOKA_TYPE_IMAGE);
  frame.format = static_cast<moka_pixel_buffer_format>(9);
  refused(&frame, "pixel buffer format: expected 0 to 5, got 9");
  frame.format = MOKA_P010;
  frame.planes[2] = nullptr;
  frame.matrix = static_cast<moka_ycbcr_matrix>(-1);
  refused(&frame, "matrix: expected 0 to 2, got -1");
  frame.struct_size = 3;
  refused(&frame, "buffer");
}

}  // namespace
}  // namespace moka::test
