#include "io/plot.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "io/font.h"

namespace moka::io {
namespace {

TEST(Font, EveryGlyphIsFiveWideAndDistinct) {
  std::set<std::string_view> seen;
  for (char c = 33; c < 127; ++c) {
    const auto dots = glyph(c);
    EXPECT_TRUE(seen.insert(dots).second) << c;
    EXPECT_TRUE(dots.size() % 6 == 5 && dots.size() <= 9 * 6) << c;
    for (size_t i = 0; i < dots.size(); ++i) {
      EXPECT_TRUE(i % 6 == 5 ? dots[i] == ' ' : dots[i] == '#' || dots[i] == '.') << c;
    }
  }
  EXPECT_TRUE(glyph(' ').empty());
  EXPECT_EQ(glyph('\x80'), glyph('\x1f'));
}

TEST(Canvas, RectsCoverWhatTheySay) {
  Canvas canvas(6, 4, {0, 0, 0});
  canvas.rect(1, 1, 2, 2, {200, 100, 50});
  canvas.rect(4, 0, 1.5, 1, {255, 255, 255});
  const Picture& p = canvas.picture();
  EXPECT_EQ(p.at(0, 1)[0], 0);
  EXPECT_EQ(p.at(1, 1)[0], 200);
  EXPECT_EQ(p.at(2, 2)[2], 50);
  EXPECT_EQ(p.at(3, 2)[0], 0);
  EXPECT_EQ(p.at(4, 0)[0], 255);
  EXPECT_EQ(p.at(5, 0)[0], 128);
}

TEST(Canvas, WhatLiesOutsideIsCutOff) {
  Canvas canvas(3, 3, {9, 9, 9});
  canvas.rect(-100, -100, 50, 50, {1, 1, 1});
  canvas.text(-3, -3, "cut off", {0, 200, 0});
  canvas.line(-5, 1.5, 50, 1.5, 1, {200, 0, 0});
  canvas.outline(1e9, 1e9, 5, 5, 1, {0, 0, 0});
  EXPECT_EQ(canvas.picture().at(1, 1)[0], 200);
}

TEST(Canvas, TextIsTheGlyphsDots) {
  Canvas canvas(12, 8, {0, 0, 0});
  canvas.text(0, 0, "T", {255, 0, 0}, 1);
  EXPECT_EQ(Canvas::text_width("TT", 1), 11);
  for (size_t x = 0; x < 5; ++x) {
    EXPECT_EQ(canvas.picture().at(x, 0)[0], 255);
    EXPECT_EQ(canvas.picture().at(x, 6)[0], x == 2 ? 255 : 0);
  }
}

}  // namespace
}  // namespace moka::io
