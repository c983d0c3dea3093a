// SPDX-License-Identifier: Apache-2.0
#include "demo/canvas.h"

#include <gtest/gtest.h>

namespace demo {
namespace {

using moka::Image;

const uint8_t* at(const Image& image, int64_t x, int64_t y) { return image.pixels.get() + y * image.row_bytes + 3 * x; }

TEST(Canvas, RectsCoverWhatTheySay) {
  Canvas canvas(6, 4, {0, 0, 0});
  canvas.rect(1, 1, 2, 2, {200, 100, 50});
  canvas.rect(4, 0, 1.5, 1, {255, 255, 255});
  const Image p = canvas.picture();
  EXPECT_EQ(at(p, 0, 1)[0], 0);
  EXPECT_EQ(at(p, 1, 1)[0], 200);
  EXPECT_EQ(at(p, 2, 2)[2], 50);
  EXPECT_EQ(at(p, 3, 2)[0], 0);
  EXPECT_EQ(at(p, 4, 0)[0], 255);
  EXPECT_EQ(at(p, 5, 0)[0], 128);
}

TEST(Canvas, WhatLiesOutsideIsCutOff) {
  Canvas canvas(3, 3, {9, 9, 9});
  canvas.rect(-100, -100, 50, 50, {1, 1, 1});
  canvas.text(-30, -30, "cut off", {0, 200, 0});
  canvas.rect(-5, 1, 55, 1, {200, 0, 0});
  canvas.outline(1e9, 1e9, 5, 5, 1, {0, 0, 0});
  EXPECT_EQ(at(canvas.picture(), 1, 1)[0], 200);
  EXPECT_EQ(at(canvas.picture(), 1, 0)[0], 9);
}

TEST(Canvas, TextIsWhereItIsAndAsWideAsItSays) {
  Canvas canvas(60, 40, {0, 0, 0});
  canvas.text(10, 10, "TT", {255, 0, 0}, 20);
  const double right = 10 + canvas.text_width("TT", 20), bottom = 10 + canvas.text_height(20);
  EXPECT_GT(canvas.text_width("TTT", 20), canvas.text_width("TT", 20));
  const Image p = canvas.picture();
  size_t inked = 0;
  for (int64_t y = 0; y < p.height; y++) {
    for (int64_t x = 0; x < p.width; x++) {
      if (at(p, x, y)[0] == 0) continue;
      inked++;
      EXPECT_EQ(at(p, x, y)[1], 0);
      EXPECT_TRUE(x >= 9 && static_cast<double>(x) <= right + 1 && y >= 9 && static_cast<double>(y) <= bottom + 1)
          << x << " " << y;
    }
  }
  EXPECT_GT(inked, 40u);
}

}  // namespace
}  // namespace demo
