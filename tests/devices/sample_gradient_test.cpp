// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "devices/graph_util.h"

/// Gradients of samples of images at given places.
namespace moka::devices_test {
namespace {

using namespace ir;

/// Runs with one to three threads, whose bits must be the same.
void expect_samples(std::string_view kernel, Graph& g, const std::vector<Value*>& results) {
  for (Value* y : results) {
    ASSERT_NE(y, nullptr);
    std::vector<Tensor> made;
    for (g.threads = 1; g.threads <= 3; g.threads++) {
      ASSERT_NO_FATAL_FAILURE(expect_same_by(kernel, g, y));
      made.push_back(run_by(kernel, g, y).outputs[0]);
      EXPECT_EQ(0, std::memcmp(made[0].data(), made.back().data(), made[0].bytes())) << g.threads << " threads";
    }
  }
}

class SampleDraw {
 public:
  explicit SampleDraw(unsigned seed) : bits_(seed) {}
  int64_t operator()(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits_); }

 private:
  std::mt19937 bits_;
};

constexpr std::array kPaddings{"constant", "border", "reflection", "symmetric"};
constexpr std::array kRanges{"unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"};
constexpr std::array kSamplings{"DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS",
                                "UNALIGN_CORNERS"};
constexpr std::array kBoxes{"CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST",
                            "CENTER_SIZE_WIDTH_FIRST"};

TEST(ResampleGradient, RandomCases) {
  SampleDraw draw(51);
  for (size_t i = 0; i < 120; i++) {
    const int64_t batch = draw(1, 3), channels = draw(1, 40), height = draw(1, 12), width = draw(1, 12);
    const Shape grid{batch, draw(1, 30), draw(1, 45), 2};
    SCOPED_TRACE(cat(batch, " ", channels, " ", height, " ", width, " ", grid, " ", i));
    Graph g(Opset::ios17, static_cast<unsigned>(i));
    Tensor at = g.random(grid, -1.3f, 1.3f);
    const bool is_zero = i % 3 == 2;
    for (size_t k = 0; k < at.mut<float>().size(); k++) {
      float& v = at.mut<float>()[k];
      if (is_zero) v = (v + 1) / 2;
      if (i % 3 == 0) v = (v + 1) / 2 * static_cast<float>((k % 2 == 0 ? width : height) - 1);
      if (i % 4 == 0 && k % 5 == 0) v = std::round(v);
    }
    expect_samples(
        "cpu.resample.gradient", g,
        g.ops("moka_resample_gradient", {{"x", g.input({batch, channels, height, width})},
                                         {"coordinates", g.input_of(at)},
                                         {"dy", g.input({batch, channels, grid[1], grid[2]})},
                                         {"sampling_mode", i % 7 == 0 ? "nearest" : "bilinear"},
                                         {"padding_mode", kPaddings[i / 3 % 4]},
                                         {"padding_value", Tensor::scalar(DType::fp32, i % 2 == 0 ? 0.75 : 0)},
                                         {"coordinates_mode", kRanges[i % 3]},
                                         {"align_corners", i % 5 < 2}}));
  }
}

TEST(CropResizeGradient, RandomCases) {
  SampleDraw draw(52);
  for (size_t i = 0; i < 120; i++) {
    const int64_t batch = draw(1, 3), channels = draw(1, 40), height = draw(1, 12), width = draw(1, 12),
                  count = draw(1, 7);
    const int64_t rows = draw(1, 9), columns = draw(1, 9);
    SCOPED_TRACE(cat(batch, " ", channels, " ", height, " ", width, " ", count, " ", i));
    Graph g(Opset::ios17, static_cast<unsigned>(i));
    std::vector<int64_t> images;
    for (int64_t n = 0; n < count; n++) images.push_back(draw(0, batch - 1));
    Tensor boxes = g.random({count, 4}, -2, 14);
    if (i % 3 == 0)
      for (float& v : boxes.mut<float>()) v = std::round(v);
    expect_samples("cpu.crop_resize.gradient", g,
                   g.ops("moka_crop_resize_gradient", {{"x", g.input({batch, channels, height, width})},
                                                       {"boxes", g.input_of(boxes)},
                                                       {"box_indices", g.input_of(Tensor::i32(images))},
                                                       {"dy", g.input({count, channels, rows, columns})},
                                                       {"target_height", static_cast<int>(rows)},
                                                       {"target_width", static_cast<int>(columns)},
                                                       {"spatial_scale", i % 2 == 0 ? 1.0f : 0.5f},
                                                       {"sampling_mode", kSamplings[i % 5]},
                                                       {"box_coordinate_mode", kBoxes[i % 4]}}));
  }
}

TEST(CropResizeGradient, RefusesABoxOfNoImage) {
  for (const int64_t image : {-1, 2}) {
    Graph g;
    Value* y = g.op("moka_crop_resize_gradient", {{"x", g.input({2, 3, 4, 5})},
                                                  {"boxes", g.input({1, 4}, 0, 3)},
                                                  {"box_indices", g.input_of(Tensor::i32({image}))},
                                                  {"dy", g.input({1, 3, 2, 2})},
                                                  {"target_height", 2},
                                                  {"target_width", 2}});
    ASSERT_NE(y, nullptr);
    g.function().body().set_outputs({y});
    const auto r = run(g.function(), g.inputs(), true);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code(), ErrorCode::data);
    EXPECT_NE(r.error().to_string().find(cat("box 0 is of image ", image)), std::string::npos);
  }
}

/// Gradients that are not finite reach only the pixels that a sample reads.
TEST(CropResizeGradient, LeavesOutPixelsWithoutAShare) {
  Graph g;
  Tensor dy = g.random({1, 3, 2, 2});
  dy.mut<float>()[0] = INFINITY;
  Value* y =
      g.op("moka_crop_resize_gradient", {{"x", g.input({1, 3, 4, 4})},
                                         {"boxes", g.input_of(Tensor::f32({1, 4}, std::vector<float>{0, 0, 1, 1}))},
                                         {"box_indices", g.input_of(Tensor::i32({0}))},
                                         {"dy", g.input_of(dy)},
                                         {"target_height", 2},
                                         {"target_width", 2},
                                         {"sampling_mode", "STRICT_ALIGN_CORNERS"}});
  ASSERT_NE(y, nullptr);
  const auto r = run_by("cpu.crop_resize.gradient", g, y);
  const auto all = r.outputs[0].view();
  EXPECT_EQ(load_f64(all, 0), INFINITY);
  for (int64_t i = 1; i < all.count(); i++) EXPECT_TRUE(std::isfinite(load_f64(all, i))) << i;
}

}  // namespace
}  // namespace moka::devices_test
