// SPDX-License-Identifier: Apache-2.0
#include "learning_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "draw/losses.h"

namespace moka::cli {
namespace {

LearningCurve falling() {
  LearningCurve curve;
  for (int i = 1; i <= 20; i++) curve.mini_batches.emplace_back(i / 2.0, 3.0 / i);
  for (int i = 1; i <= 10; i++) curve.epochs.emplace_back(i, 3.0 / (2 * i));
  return curve;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(LearningCurve, TopIsARoundNumber) {
  LearningCurve curve;
  EXPECT_EQ(curve.top(), 1);
  EXPECT_EQ(curve.last(), 1);
  for (const auto& [loss, top] : {std::pair{3.0, 4.0}, {0.07, 0.08}, {2e5, 2e5}, {9.5, 10.0}, {0.0, 1.0}}) {
    curve.mini_batches = {{0.5, loss}};
    EXPECT_DOUBLE_EQ(curve.top(), top) << loss;
  }
}

TEST(LearningCurve, TextHasTheFirstLossAtTheTopAndTheLastAtTheBottom) {
  const std::vector<std::string> lines = lines_of(curve_text(falling()));
  ASSERT_EQ(lines.size(), 16u);
  EXPECT_EQ(lines[0], "       4 |");
  EXPECT_EQ(lines[3], "       3 |   .");
  EXPECT_TRUE(lines[12].starts_with("       0 |")) << lines[12];
  EXPECT_EQ(lines[12].back(), 'o');
  EXPECT_TRUE(lines[14].ends_with("10 epochs")) << lines[14];
  for (const std::string& line : lines) EXPECT_LE(line.size(), 71u);
  size_t discs = 0;
  for (size_t i = 0; i <= 12; i++) discs += static_cast<size_t>(std::count(lines[i].begin(), lines[i].end(), 'o'));
  EXPECT_EQ(discs, 10u);
}

TEST(LearningCurve, NothingIsDrawnOutsideForNoLosses) {
  EXPECT_EQ(lines_of(curve_text({})).size(), 16u);
  const Plot plot = plot_of(LearningCurve{});
  EXPECT_EQ(plot.right, 1);
  EXPECT_EQ(plot.top, 1);
  EXPECT_TRUE(plot.series.at(0).points.empty());
  const Plot losses = plot_of(falling());
  EXPECT_EQ(losses.top, 4);
  EXPECT_EQ(losses.series.at(0).points.size(), 20u);
  EXPECT_TRUE(losses.series.at(0).is_line);
  EXPECT_EQ(losses.series.at(1).points.at(9), std::pair(10.0, 0.15));
  EXPECT_EQ(losses.y_marks.at(3).text, "3");
}

}  // namespace
}  // namespace moka::cli
